-- Replies -1 if the list has a waiter, and otherwise the number of subscribers of the channel.
--
-- KEYS lock, list; ARGV channel
if (typed('llen', KEYS[2]) or 0) > 0 then
	return -1
end
return redis.call('pubsub', 'numsub', ARGV[1])[2]

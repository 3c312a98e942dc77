-- Replies -1 if the list has a waiter, and otherwise the number of subscribers of the channel.
--
-- KEYS lock [list]; ARGV channel
local n = KEYS[2] and redis.pcall('llen', KEYS[2])
if type(n) == 'number' and n > 0 then
	return -1
end
return redis.call('pubsub', 'numsub', ARGV[1])[2]

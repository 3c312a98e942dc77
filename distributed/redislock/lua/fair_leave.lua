-- Removes the owner from the queue. If the lock is free, the next waiter is told: perhaps it was the owner that had been told.
--
-- KEYS lock, queue, times; ARGV owner, channel, whether the server counts, publish commands
redis.call('lrem', queue, 0, ARGV[1])
redis.call('zrem', times, ARGV[1])
if sweep() then
	keep()
	if redis.call('exists', lock) == 0 then
		tell(4, ARGV[2])
	end
end
return 0

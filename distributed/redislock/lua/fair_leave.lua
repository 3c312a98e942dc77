-- Removes the acquisition from the queue. If the lock is free, it wakes the next waiter, because
-- the acquisition may have been the one that was woken.
--
-- KEYS lock, queue, times; ARGV acquisition, wait, channel, whether the server counts subscribers,
-- publish commands
local at = redis.call('lpos', queue, ARGV[1])
if at then
	redis.call('lrem', queue, 0, ARGV[1])
	close(at, tonumber(ARGV[2]))
end
redis.call('zrem', times, ARGV[1])
local head = sweep()
if head then
	keep()
	if redis.call('exists', lock) == 0 then
		tell(5, ARGV[3], head)
	end
end
return 0

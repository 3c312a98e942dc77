-- Frees the lock and wakes the next waiter. The reply is 1 if there is one and 0 if not. It is nil
-- if the acquisition did not hold the lock.
--
-- KEYS lock, queue, times; ARGV acquisition, channel, whether the server counts subscribers,
-- publish commands
local held = typed('hdel', lock, ARGV[1])
local head = sweep()
local free = head and (held == 1 or redis.call('exists', lock) == 0)
local awaited = free and tell(4, ARGV[2], head)
if held ~= 1 then
	return false
end
return awaited and 1 or 0

-- Frees the lock and tells the next waiter. The reply is 1 if there is one, and nothing if the lock was not the owner's.
--
-- KEYS lock, queue, times; ARGV owner, channel, whether the server counts, publish commands
local held = redis.pcall('hdel', lock, ARGV[1])
local head = sweep()
local awaited = head and redis.call('exists', lock) == 0 and tell(4, ARGV[2])
if held ~= 1 then
	return false
end
return awaited and 1 or 0

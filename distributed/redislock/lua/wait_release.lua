-- Frees the lock and wakes a waiter. The reply is that of wake, or nothing if the lock was not the owner's.
--
-- KEYS lock, channel, list; ARGV owner, whether the server counts, publish commands
if redis.pcall('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
return wake(KEYS[3], KEYS[2], 3)

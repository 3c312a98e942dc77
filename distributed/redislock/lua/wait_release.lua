-- Frees the lock and wakes a waiter. The reply is that of wake. It is nil if the acquisition did not
-- hold the lock.
--
-- KEYS lock, channel, list; ARGV acquisition, whether the server counts subscribers, publish commands
if typed('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
return wake(KEYS[3], KEYS[2], 3)

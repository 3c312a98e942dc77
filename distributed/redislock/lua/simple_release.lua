-- Deletes the lock and wakes a waiter. The reply is that of wait_release.
--
-- KEYS lock, channel, list; ARGV acquisition, whether the server counts subscribers, publish commands
if typed('get', KEYS[1]) ~= ARGV[1] then
	return false
end
redis.call('del', KEYS[1])
return wake(KEYS[3], KEYS[2], 3)

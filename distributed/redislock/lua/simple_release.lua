-- Deletes the lock. The reply is that of hash_release.
--
-- KEYS lock, channel; ARGV acquisition, payload, publish commands
if typed('get', KEYS[1]) ~= ARGV[1] then
	return false
end
redis.call('del', KEYS[1])
return publish(3, KEYS[2], ARGV[2])

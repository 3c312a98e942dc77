-- Takes the owner's field away, whatever its count, and with it the hash, which has no other field. The reply is how many
-- connections heard of it, or nothing if the lock was not the owner's.
--
-- KEYS lock, channel; ARGV owner, payload, publish commands
if redis.pcall('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
return publish(3, KEYS[2], ARGV[2])

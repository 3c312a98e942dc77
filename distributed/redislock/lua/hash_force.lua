-- Frees the lock without its holder. The reply is a list of the holders, empty if the lock was free.
--
-- KEYS lock, channel; ARGV nothing, payload, publish commands
if redis.call('exists', KEYS[1]) == 0 then
	return {}
end
local holder = lockLike(KEYS[1])
if not holder then
	return redis.error_reply('FOREIGN it is no lock')
end
redis.call('del', KEYS[1])
publish(3, KEYS[2], ARGV[2])
return {holder}

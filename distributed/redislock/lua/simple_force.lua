-- Frees the lock without its holder. The reply is that of hash_force.
--
-- KEYS lock, channel; ARGV nothing, payload, publish commands
local holder = redis.call('get', KEYS[1])
if not holder then
	return {}
end
if redis.call('pttl', KEYS[1]) < 0 then
	return redis.error_reply('FOREIGN a string without a time to live is no lock')
end
redis.call('del', KEYS[1])
publish(3, KEYS[2], ARGV[2])
return {holder}

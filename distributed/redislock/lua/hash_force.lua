-- Frees the lock without its holder. The reply is 1, or 0 if the lock was free.
--
-- KEYS lock, channel; ARGV nothing, payload, publish commands
if redis.call('exists', KEYS[1]) == 0 then
	return 0
end
if not lockLike(KEYS[1]) then
	return redis.error_reply('FOREIGN it is no lock')
end
redis.call('del', KEYS[1])
publish(3, KEYS[2], ARGV[2])
return 1

-- Frees the lock without its holder, and wakes the next waiter. The reply is that of hash_force.
--
-- KEYS lock, queue, times; ARGV channel, whether the server counts subscribers, publish commands
if redis.call('exists', lock) == 0 then
	return {}
end
local holder = lockLike(lock)
if not holder then
	return redis.error_reply('FOREIGN it is no lock')
end
redis.call('del', lock)
local head = sweep()
tell(3, ARGV[1], head)
return {holder}

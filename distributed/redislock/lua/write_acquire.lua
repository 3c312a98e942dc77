-- Acquires the write half if the lock is free, or if the acquisition holds it already. The reply is
-- that of hash_acquire, without a token.
--
-- KEYS lock; ARGV lease, acquisition:write
local lock, owner = KEYS[1], ARGV[2]
if redis.call('exists', lock) == 1 then
	local mode = redis.call('hget', lock, 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= 'write' or redis.call('hexists', lock, owner) == 0 then
		return {redis.call('pttl', lock)}
	end
end
redis.call('hset', lock, 'mode', 'write', owner, 1)
redis.call('pexpire', lock, ARGV[1])
return 0

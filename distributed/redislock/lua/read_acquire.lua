-- Acquires the read half if there is no writer. The holder of the write half may read too: the last
-- argument is its name then. The reply is that of hash_acquire, without a token.
--
-- KEYS lock, hold; ARGV lease, acquisition[, acquisition:write]
local lock, lease = KEYS[1], tonumber(ARGV[1])
if redis.call('exists', lock) == 1 then
	local mode = redis.call('hget', lock, 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= 'read' and not (ARGV[3] and redis.call('hexists', lock, ARGV[3]) == 1) then
		return {redis.call('pttl', lock)}
	end
end
redis.call('hsetnx', lock, 'mode', 'read')
redis.call('hset', lock, ARGV[2], 1)
redis.call('set', KEYS[2], 1, 'PX', lease)
if redis.call('pttl', lock) < lease then
	redis.call('pexpire', lock, lease)
end
return 0

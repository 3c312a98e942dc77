-- Acquires the read half if there is no writer. The holder of the write half may read too: writer is
-- its name then, and otherwise empty. The reply is that of wait_acquire, without a token.
--
-- KEYS lock, hold [list]; ARGV lease, acquisition, writer [how]
local lock, lease = KEYS[1], tonumber(ARGV[1])
if redis.call('exists', lock) == 1 then
	local mode = redis.call('hget', lock, 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= 'read' and (ARGV[3] == '' or redis.call('hexists', lock, ARGV[3]) == 0) then
		return refused(lock, KEYS[3], ARGV[2], ARGV[4])
	end
end
redis.call('hsetnx', lock, 'mode', 'read')
redis.call('hset', lock, ARGV[2], 1)
redis.call('set', KEYS[2], 1, 'PX', lease)
if redis.call('pttl', lock) < lease then
	redis.call('pexpire', lock, lease)
end
unlist(KEYS[3], ARGV[2], ARGV[4])
return 0

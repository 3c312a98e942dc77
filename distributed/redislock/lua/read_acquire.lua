-- Acquires the read half if there is no writer. The holder of the write half may read too: writer is
-- its name then, and otherwise empty. The reply is that of wait_acquire, without a token.
--
-- KEYS lock, hold [list]; ARGV lease, acquisition, writer [how]
local lock, lease = KEYS[1], tonumber(ARGV[1])
local rest = redis.call('pttl', lock)
if rest == -2 then
	redis.call('hset', lock, 'mode', 'read', ARGV[2], 1)
else
	local mode = redis.call('hget', lock, 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= 'read' and (ARGV[3] == '' or redis.call('hexists', lock, ARGV[3]) == 0) then
		return refused(lock, rest, KEYS[3], ARGV[2], ARGV[4])
	end
	redis.call('hset', lock, ARGV[2], 1)
end
-- First the lock, then the hold: the server's clock may pass a millisecond between them, and a release
-- takes a lock that lasts longer than its hold for that of another reader.
if rest < lease then
	redis.call('pexpire', lock, lease)
end
redis.call('set', KEYS[2], 1, 'PX', lease)
unlist(KEYS[3], ARGV[2], ARGV[4])
return 0

-- Acquires the write half if the lock is free, or if the acquisition holds it already. The reply is
-- that of wait_acquire, without a token.
--
-- KEYS lock [list]; ARGV lease, acquisition:write [how]
local lock, owner = KEYS[1], ARGV[2]
local rest = redis.call('pttl', lock)
if rest ~= -2 then
	local fields = redis.call('hmget', lock, 'mode', owner)
	if not fields[1] then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	elseif fields[1] ~= 'write' or not fields[2] then
		return refused(lock, rest, KEYS[2], owner, ARGV[3])
	end
end
redis.call('hset', lock, 'mode', 'write', owner, 1)
if rest < tonumber(ARGV[1]) then -- a writer that asks again may read too, for longer
	redis.call('pexpire', lock, ARGV[1])
end
unlist(KEYS[2], owner, ARGV[3])
return 0

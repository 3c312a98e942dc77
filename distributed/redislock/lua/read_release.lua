-- Deletes the reader's hold. The lock is free if no reader has a hold that lasts, and there is no
-- writer. Otherwise it lasts as long as the longest hold. The reply is that of wait_release, or 0 if
-- the lock is not free.
--
-- KEYS lock, channel, list, prefix of all holds, hold; ARGV acquisition, whether the server counts
-- subscribers, publish commands
local lock = KEYS[1]
if typed('hdel', lock, ARGV[1]) ~= 1 then
	return false
end
redis.call('del', KEYS[5])
if redis.call('hget', lock, 'mode') == 'write' then
	return 0
end
local rest = longest(lock, KEYS[4])
if rest > 0 then
	redis.call('pexpire', lock, rest)
	return 0
end
redis.call('del', lock)
return wake(KEYS[3], KEYS[2], 3, '0', false)

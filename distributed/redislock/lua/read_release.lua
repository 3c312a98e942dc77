-- Deletes the reader's hold. The lock is free if no reader has a hold that lasts, and there is no
-- writer. Otherwise it lasts as long as the longest hold. Only the release of that one has to look at
-- all holds. The reply is that of wait_release, or 0 if the lock is not free.
--
-- KEYS lock, channel, list, prefix of all holds, hold; ARGV acquisition, whether the server counts
-- subscribers, publish commands
local lock = KEYS[1]
if typed('hdel', lock, ARGV[1]) ~= 1 then
	return false
end
if redis.call('hlen', lock) <= 1 then -- the mode alone: nobody else holds the lock
	redis.call('del', lock, KEYS[5])
	return wake(KEYS[3], KEYS[2], 3, '0', false)
end
local shorter = redis.call('pttl', KEYS[5]) < redis.call('pttl', lock)
redis.call('del', KEYS[5])
if shorter or redis.call('hget', lock, 'mode') == 'write' then
	return 0
end
if limit(lock, KEYS[4]) then
	return 0
end
redis.call('del', lock)
return wake(KEYS[3], KEYS[2], 3, '0', false)

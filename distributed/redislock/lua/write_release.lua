-- Deletes the writer's hold. A writer that also reads keeps the lock as a reader, as long as that
-- hold lasts. In both cases all waiters are woken, because other readers may enter. Redisson wakes
-- nobody in the former case: its readers come when the time is over that they were told.
--
-- KEYS lock, channel, prefix of all holds; ARGV acquisition:write, payload, publish commands
if typed('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
local rest = longest(KEYS[1], KEYS[3])
if rest > 0 then
	redis.call('hset', KEYS[1], 'mode', 'read')
	redis.call('pexpire', KEYS[1], rest)
else
	redis.call('del', KEYS[1])
end
return publish(3, KEYS[2], ARGV[2])

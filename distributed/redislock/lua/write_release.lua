-- Deletes the writer's hold. A writer that also reads keeps the lock as a reader, as long as that
-- hold lasts. In both cases waiters are woken, because other readers may enter. Redisson wakes
-- nobody in the former case: its readers come when the time is over that they were told. The reply
-- is that of wait_release.
--
-- KEYS lock, channel, list, prefix of all holds; ARGV acquisition:write, whether the server counts
-- subscribers, publish commands
if typed('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
local reads = limit(KEYS[1], KEYS[4])
if reads then
	redis.call('hset', KEYS[1], 'mode', 'read')
else
	redis.call('del', KEYS[1])
end
return wake(KEYS[3], KEYS[2], 3, '1', reads)

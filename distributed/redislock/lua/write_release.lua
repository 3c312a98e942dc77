-- Deletes the writer's hold. A writer that also reads keeps the lock as a reader, as long as that
-- hold lasts. In both cases waiters are woken, because other readers may enter. Redisson wakes
-- nobody in the former case: its readers come when the time is over that they were told. The reply
-- is that of wait_release.
--
-- KEYS lock, channel, list, prefix of all holds; ARGV acquisition:write, whether the server counts
-- subscribers, publish commands
local fields, held, others = typed('hgetall', KEYS[1]) or {}, false, false
for i = 1, #fields, 2 do
	if fields[i] == ARGV[1] then
		held = true
	elseif fields[i] ~= 'mode' then
		others = true
	end
end
if not held then
	return false
end
local reads = false
if others then
	redis.call('hdel', KEYS[1], ARGV[1])
	reads = limit(KEYS[1], KEYS[4])
end
if reads then
	redis.call('hset', KEYS[1], 'mode', 'read')
else
	redis.call('del', KEYS[1])
end
return wake(KEYS[3], KEYS[2], 3, '1', reads)

-- Makes a semaphore with so many permits if there is none. The reply is whether there was none.
--
-- KEYS free permits, channel; ARGV permits, publish commands
if redis.call('exists', KEYS[1]) == 1 then
	local _, foreign = number(KEYS[1])
	return foreign or 0
end
redis.call('set', KEYS[1], ARGV[1])
tellFree(2, KEYS[2], tonumber(ARGV[1]))
return 1

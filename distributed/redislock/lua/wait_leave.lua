-- Removes a waiter from the list. A waiter that is not there was woken: if the lock is free, the
-- next one is woken instead.
--
-- KEYS lock, channel, list; ARGV waiter, whether the server counts subscribers, publish commands
local n = redis.pcall('lrem', KEYS[3], 0, ARGV[1])
if type(n) == 'number' and n > 0 or redis.call('exists', KEYS[1]) == 1 or redis.pcall('llen', KEYS[3]) == 0 then
	return 0
end
wake(KEYS[3], KEYS[2], 3)
return 1

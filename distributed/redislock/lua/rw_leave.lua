-- Removes a waiter from the list. A waiter that is not there was woken: if the lock is free, others
-- are woken instead. If readers hold it, other readers may enter.
--
-- KEYS lock, channel, list; ARGV waiter, whether the server counts subscribers, publish commands
local n = redis.pcall('lrem', KEYS[3], 0, ARGV[1])
local mode = typed('hget', KEYS[1], 'mode')
if type(n) == 'number' and n > 0 or mode == 'write' or redis.pcall('llen', KEYS[3]) == 0 then
	return 0
end
wake(KEYS[3], KEYS[2], 3, '0', mode == 'read')
return 1

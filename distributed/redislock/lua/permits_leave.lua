-- Removes a waiter from the list. A waiter that is not there was woken: others are woken instead, for
-- whom there are permits.
--
-- KEYS semaphore, channel, list; ARGV waiter, whether the server counts subscribers, publish commands
local waiters = redis.pcall('lrange', KEYS[3], 0, -1)
local found = #waiters == 0
for _, waiter in ipairs(waiters) do
	if waiter == ARGV[1] or waiter:sub(1, #ARGV[1] + 1) == ARGV[1] .. ':' then
		redis.call('lrem', KEYS[3], 0, waiter)
		found = true
	end
end
if found or typed('zcard', KEYS[1]) == false then
	return 0
end
wake(KEYS[3], KEYS[2], 3, collect(KEYS[1], now()), true)
return 1

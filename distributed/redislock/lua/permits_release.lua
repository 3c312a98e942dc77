-- Gives the permits of the acquisition back, and wakes waiters. The reply is that of wake. It is nil if
-- the acquisition had no permits.
--
-- KEYS semaphore, channel, list; ARGV acquisition, whether the server counts subscribers, publish commands
local key, owner = KEYS[1], ARGV[1]
if not typed('zscore', key, owner) then
	return false
end
local at = now()
local held = tonumber(redis.call('zscore', key, owner)) > at
if held then
	drop(key, owner)
end
local taken = collect(key, at)
if redis.call('zcard', key) == 1 then -- the sum alone
	redis.call('del', key)
end
local heard = wake(KEYS[3], KEYS[2], 3, taken)
return held and heard

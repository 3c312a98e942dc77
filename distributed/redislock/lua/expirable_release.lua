-- Gives the permits of the acquisition back, and wakes waiters. The reply is 1 if the permits lasted until
-- now, and otherwise nil.
--
-- KEYS free permits, ends of leases, channel; ARGV base, publish commands
local free, ends, n = KEYS[1], KEYS[2], 0
local till = typed('zscore', ends, id(ARGV[1], 0))
while till and redis.call('zrem', ends, id(ARGV[1], n)) == 1 do
	n = n + 1
end
if n == 0 then
	return false
end
tellFree(2, KEYS[3], redis.call('incrby', free, n))
return tonumber(till) > now() and 1

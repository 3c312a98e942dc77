-- Adds permits, or takes them away if their number is negative. A semaphore that is not there has none.
--
-- KEYS free permits, channel; ARGV permits, publish commands
local _, foreign = number(KEYS[1])
if foreign then
	return foreign
end
firm(KEYS[2])
tellFree(2, KEYS[2], redis.call('incrby', KEYS[1], ARGV[1]))
return 1

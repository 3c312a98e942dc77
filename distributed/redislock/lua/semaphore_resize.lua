-- Sets how many permits there are, free and held.
--
-- KEYS free permits, ends of leases, channel; ARGV permits, publish commands
local value, foreign = number(KEYS[1])
if foreign then
	return foreign
end
local more = ARGV[1] - value - redis.call('zcount', KEYS[2], 0, '+inf')
if more ~= 0 or redis.call('exists', KEYS[1]) == 0 then
	redis.call('incrby', KEYS[1], more)
	tellFree(2, KEYS[3], tonumber(ARGV[1]))
end
return 1

-- Acquires permits of Redisson's RPermitExpirableSemaphore if so many are free, or if the acquisition has
-- them already. The reply is 0. A refusal replies a list with the time until the first permit lapses.
--
-- KEYS free permits, ends of leases, channel; ARGV lease, base, permits, publish commands
local free, ends, base, permits = KEYS[1], KEYS[2], ARGV[2], tonumber(ARGV[3])
local _, foreign = number(free)
if foreign then
	return foreign
end
local at = now()
collect(free, ends, KEYS[3], at, 4)
local mine = redis.call('zscore', ends, id(base, 0))
if not mine then
	-- Redisson, with a clock that is ahead, may have collected the first ids of this acquisition alone.
	local left = 0
	while redis.call('zrem', ends, id(base, permits - 1 - left)) == 1 do
		left = left + 1
	end
	if left > 0 then
		tellFree(4, KEYS[3], redis.call('incrby', free, left))
	end
	if number(free) < permits then
		local first = redis.call('zrange', ends, 0, 0, 'WITHSCORES')[2]
		return {first and tonumber(first) < 922337203685477 and first - at or -1}
	end
	redis.call('decrby', free, permits)
end
-- The time is cut to whole milliseconds, so it can be one earlier than now.
for i = 0, permits - 1 do
	redis.call('zadd', ends, at + ARGV[1] + 1, id(base, i))
end
local ttl = redis.call('pttl', free)
if ttl > 0 then
	redis.call('pexpire', ends, ttl)
end
return 0

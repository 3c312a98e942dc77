-- id returns the id of the permit i of an acquisition. The first one is 0. All ids of an acquisition have
-- the same base.
local function id(base, i)
	return base .. string.char(math.floor(i / 16777216) % 256, math.floor(i / 65536) % 256,
		math.floor(i / 256) % 256, i % 256)
end

-- number returns how many permits are free, 0 if free does not exist, and an error reply if it is no
-- number.
local function number(free)
	local value = redis.call('get', free)
	if value and not string.find(value, '^%-?%d+$') then
		return nil, redis.error_reply('FOREIGN the value is no number of permits')
	end
	return tonumber(value or 0)
end

-- tellFree publishes how many permits are free. Redisson throws for a number below 0, and 0 frees nobody.
local function tellFree(first, channel, value)
	if value > 0 then
		publish(first, channel, string.format('%.0f', value))
	end
end

-- collect gives the permits back whose time is over by the time at, as scripts of Redisson do.
local function collect(free, ends, channel, at, first)
	local lapsed = redis.call('zrangebyscore', ends, 0, at)
	if #lapsed == 0 then
		return
	end
	for _, permit in ipairs(lapsed) do
		redis.call('zrem', ends, permit)
	end
	tellFree(first, channel, redis.call('incrby', free, #lapsed))
end

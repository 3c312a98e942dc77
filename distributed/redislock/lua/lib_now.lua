-- now returns the server's time in ms since 1970.
local function now()
	local time = redis.call('time')
	return time[1] * 1000 + math.floor(time[2] / 1000)
end

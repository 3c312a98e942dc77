-- take makes the acquisition owner the holder, with a count of one. To do it twice is the same as
-- once. It returns the token: the next number of the counter, or the server's time in microseconds
-- if that is larger. So tokens increase even if the counter is lost or set back. Both numbers are
-- exact in a script, whose numbers are exact up to 2^53.
local function take(lock, owner, lease, counter)
	local token = 0
	if counter then
		token = redis.call('incr', counter)
		local now = redis.call('time')
		now = now[1] * 1000000 + now[2]
		if token < now then
			token = now
			redis.call('set', counter, string.format('%.0f', token))
		end
	end
	redis.call('hset', lock, owner, 1)
	redis.call('pexpire', lock, lease)
	return token
end

-- take makes the acquisition owner the holder, with a count of one. To do it twice is the same as
-- once. It returns the token. An absent counter begins with the server's time in milliseconds,
-- beyond all tokens that it may have had before.
local function take(lock, owner, lease, counter)
	local token = 0
	if counter then
		token = redis.call('incr', counter)
		if token == 1 then
			local now = redis.call('time')
			token = now[1] * 1000 + math.floor(now[2] / 1000)
			redis.call('set', counter, string.format('%.0f', token))
		end
	end
	redis.call('hset', lock, owner, 1)
	redis.call('pexpire', lock, lease)
	return token
end

-- take gives the lock to the owner, with a count of one: to do it twice is the same as once. It returns the token. A
-- counter that is absent begins with the server's time in milliseconds, beyond all tokens that it may have had before.
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

-- nextToken returns the next token: the next number of the counter, or the server's time in microseconds if
-- that is larger. So tokens increase even if the counter is lost or set back. Both numbers are exact in a
-- script, whose numbers are exact up to 2^53. The time is larger unless the clock was set back or the
-- counter is Redisson's, so the script writes the time before it compares. A counter that is no number
-- stays what it was, and the script ends with an error.
local function nextToken(counter)
	local time = redis.call('time')
	local now = time[1] * 1000000 + time[2]
	local last = redis.call('getset', counter, string.format('%.0f', now))
	if not last or string.find(last, '^-?%d+$') and tonumber(last) < now then
		return now
	end
	redis.call('set', counter, last)
	return redis.call('incr', counter)
end

-- take makes the acquisition owner the holder, with a count of one. To do it twice is the same as
-- once. It returns the token, which is 0 without a counter.
local function take(lock, owner, lease, counter)
	local token = counter and nextToken(counter) or 0
	redis.call('hset', lock, owner, 1)
	redis.call('pexpire', lock, lease)
	return token
end

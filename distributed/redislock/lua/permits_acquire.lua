-- Acquires permits if the size of the semaphore allows that, or if the acquisition has them already. The
-- reply is 0. A refusal replies what refusal returns, with the time until the first lease ends. A waiter's
-- name in the list has its permits and its size behind the acquisition.
--
-- KEYS semaphore [list]; ARGV lease, acquisition, permits, size [how]
local key, owner, permits, size = KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local waiter, at = owner .. ':' .. ARGV[3] .. ':' .. ARGV[4], now()
local taken = collect(key, at)
if not redis.call('zscore', key, owner) then
	if taken + permits > size then
		local first = redis.call('zrangebyscore', key, 1, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
		return refusal((first or at) - at, KEYS[2], waiter, ARGV[5], 0)
	end
	redis.call('zadd', key, -permits, 'n ' .. owner)
	redis.call('zincrby', key, -permits, 'taken')
end
hold(key, owner, at, tonumber(ARGV[1]))
unlist(KEYS[2], waiter, ARGV[5])
return 0

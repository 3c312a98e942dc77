-- The state of a semaphore is one sorted set. An acquisition that has permits has two members: its name
-- with the end of its lease, in ms since 1970 by the server's clock, and "n <name>" with the number of
-- its permits. The member "taken" has the sum of these numbers. Numbers of permits are negative in the
-- set, so that ends and numbers do not mix.

-- drop ends the hold of the acquisition owner.
local function drop(key, owner)
	local n = redis.call('zscore', key, 'n ' .. owner) or 0
	redis.call('zrem', key, owner, 'n ' .. owner)
	redis.call('zincrby', key, -n, 'taken')
end

-- collect ends all holds whose leases are over by the time at, and returns how many permits are taken.
local function collect(key, at)
	for _, owner in ipairs(redis.call('zrangebyscore', key, 1, at)) do
		drop(key, owner)
	end
	return -(redis.call('zscore', key, 'taken') or 0)
end

-- hold makes the hold of the acquisition owner last for lease from the time at. That is cut to whole
-- milliseconds, so it can be one earlier than now.
local function hold(key, owner, at, lease)
	redis.call('zadd', key, at + lease + 1, owner)
	if redis.call('pttl', key) < lease then
		redis.call('pexpire', key, lease)
	end
end

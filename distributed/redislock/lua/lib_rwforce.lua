-- force frees the lock and all its holds if its mode is which. It returns 1, or 0 if it did nothing.
local function force(which)
	if redis.call('exists', KEYS[1]) == 0 then
		return 0
	end
	local mode = redis.call('hget', KEYS[1], 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= which then
		return 0
	end
	holds(KEYS[1], KEYS[3], function(key) redis.call('del', key) end)
	redis.call('del', KEYS[1])
	publish(3, KEYS[2], ARGV[2])
	return 1
end

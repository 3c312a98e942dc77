-- force frees the lock and all its holds if its mode is which. It returns the fields of the hash,
-- among them the holders, or an empty list if it did nothing.
local function force(which)
	if redis.call('exists', KEYS[1]) == 0 then
		return {}
	end
	local mode = redis.call('hget', KEYS[1], 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= which then
		return {}
	end
	local fields = redis.call('hkeys', KEYS[1])
	holds(KEYS[1], KEYS[3], function(key) redis.call('del', key) end)
	redis.call('del', KEYS[1])
	publish(3, KEYS[2], ARGV[2])
	return fields
end

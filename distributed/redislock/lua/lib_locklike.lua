-- lockLike reports whether key is a hash with one field, which is a count: a lock with one holder.
local function lockLike(key)
	local pair = redis.pcall('hgetall', key)
	return not pair.err and #pair == 2 and tonumber(pair[2])
end

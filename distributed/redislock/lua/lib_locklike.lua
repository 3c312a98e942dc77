-- lockLike tells the hash of a lock with one holder from others.
local function lockLike(key)
	local pair = redis.pcall('hgetall', key)
	return not pair.err and #pair == 2 and tonumber(pair[2])
end

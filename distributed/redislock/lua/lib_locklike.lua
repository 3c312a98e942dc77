-- lockLike reports whether key is a hash with one field, which is a count: a lock with one holder.
local function lockLike(key)
	local pair = typed('hgetall', key)
	return pair and #pair == 2 and tonumber(pair[2])
end

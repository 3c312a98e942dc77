-- lockLike returns the holder if key is a lock with one holder: a hash with one field, which is a
-- count. Otherwise it returns false.
local function lockLike(key)
	local pair = typed('hgetall', key)
	return pair and #pair == 2 and tonumber(pair[2]) and pair[1]
end

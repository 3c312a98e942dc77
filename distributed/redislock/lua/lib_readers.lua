-- holds calls f with the key of each hold of the readers in the hash at lock. All these keys begin
-- with prefix. It visits ten thousand holds of a reader at most, which no reader has. A wrong count
-- could otherwise keep the script running for ever.
local function holds(lock, prefix, f)
	local fields = redis.call('hgetall', lock)
	for i = 1, #fields, 2 do
		for n = 1, math.min(tonumber(fields[i + 1]) or 0, 10000) do
			f(prefix .. ':' .. fields[i] .. ':rwlock_timeout:' .. n)
		end
	end
end

-- longest returns the time to live of the readers' longest hold, or 0. A reader whose hold has
-- expired still has a field.
local function longest(lock, prefix)
	local longest = 0
	holds(lock, prefix, function(key) longest = math.max(longest, redis.call('pttl', key)) end)
	return longest
end

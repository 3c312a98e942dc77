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

-- limit lets the lock last as long as the readers' longest hold, and returns whether there is one. A
-- reader whose hold has expired still has a field. The time is read before the holds are, so that the
-- lock lasts no longer than that hold: a release takes a longer one for that of another reader.
local function limit(lock, prefix)
	local now, longest = redis.call('time'), 0
	holds(lock, prefix, function(key) longest = math.max(longest, redis.call('pttl', key)) end)
	if longest > 0 then
		redis.call('pexpireat', lock, now[1] * 1000 + math.floor(now[2] / 1000) + longest)
	end
	return longest > 0
end

-- look returns whose the lock is: 'free', 'mine', or 'held' with the time to live of another's hold. Anything else under
-- the name is an error reply in the second place. A hash counts as a lock if a field of it has a count, and a name with a
-- colon, as every owner of Redisson has, or at least a time to live.
local function look(lock, owner)
	local ttl = redis.call('pttl', lock)
	if ttl == -2 then
		return 'free'
	end
	local fields, like = redis.call('hscan', lock, 0, 'count', 16)[2], false
	for i = 1, #fields, 2 do
		local field, value = fields[i], fields[i + 1]
		if field == owner then
			return 'mine'
		elseif field == 'mode' then
			return 'foreign', redis.error_reply('FOREIGN the lock is a read-write lock')
		elseif string.find(value, '^[1-9]%d*$') and (string.find(field, ':', 1, true) or ttl >= 0) then
			like = true
		end
	end
	if not like then
		return 'foreign', redis.error_reply('FOREIGN the hash is no lock')
	end
	return 'held', ttl
end

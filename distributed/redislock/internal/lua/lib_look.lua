-- look returns the state of the lock for the acquisition owner: 'free'; 'mine'; 'held', the time to
-- live of the hold, and the holder's name; or 'foreign' and an error reply, if something else is
-- under the name. A hash is a lock if the value of a field is a count, and either the field's name
-- has a colon, as all names of holders have, or the hash has a time to live.
local function look(lock, owner)
	local ttl = redis.call('pttl', lock)
	if ttl == -2 then
		return 'free'
	end
	local fields, holder = redis.call('hscan', lock, 0, 'count', 16)[2], nil
	for i = 1, #fields, 2 do
		local field, value = fields[i], fields[i + 1]
		if field == owner then
			return 'mine'
		elseif field == 'mode' then
			return 'foreign', redis.error_reply('FOREIGN the lock is a read-write lock')
		elseif string.find(value, '^[1-9]%d*$') and (string.find(field, ':', 1, true) or ttl >= 0) then
			holder = holder or field
		end
	end
	if not holder then
		return 'foreign', redis.error_reply('FOREIGN the hash is no lock')
	end
	return 'held', ttl, holder
end

-- Acquires the lock like hash_acquire, or gives the acquisition a place in the list of waiters. how
-- is 'new' if it has no place, 'again' if it may have one, and 'woken' if a release has removed it
-- from the list. The reply to a refusal is the time to live of the hold, the place in the list or
-- 0, and 1 if the holder is Redisson's.
--
-- KEYS lock, list [counter]; ARGV lease, acquisition, how
local list, owner, how = KEYS[2], ARGV[2], ARGV[3]
local state, rest, holder = look(KEYS[1], owner)
if state == 'foreign' then
	return rest
elseif state ~= 'held' then
	local token = take(KEYS[1], owner, ARGV[1], KEYS[3])
	if how == 'again' then
		redis.pcall('lrem', list, 0, owner)
	end
	return token
end
local place = how == 'again' and redis.pcall('lpos', list, owner)
if type(place) == 'number' then
	place = place + 1
elseif how == 'woken' then
	redis.pcall('lrem', list, 0, owner)
	place = redis.pcall('lpush', list, owner)
	place = type(place) == 'number' and 1 or 0
else
	if how == 'again' then
		redis.pcall('lrem', list, 0, owner)
	end
	place = redis.pcall('rpush', list, owner)
	place = type(place) == 'number' and place or 0
end
if place == 1 or how == 'again' then
	redis.pcall('pexpire', list, 60000)
end
return {rest, place, ours(holder) and 0 or 1}

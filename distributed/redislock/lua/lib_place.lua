-- refusal returns the reply to a request that is refused: the time to live of the hold. If there is
-- a list of waiters, the acquisition owner has a place in it from now on. Then the reply also has
-- that place, or 0, and hears: 1 if the waiter has to hear the lock's channel. how is 'new' if it
-- has no place, 'again' if it may have one, and 'woken' if a release has removed it from the list.
local function refusal(rest, list, owner, how, hears)
	if not list then
		return {rest}
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
	return {rest, place, hears}
end

-- unlist removes the acquisition owner, which has the lock, from the list of waiters.
local function unlist(list, owner, how)
	if how == 'again' then
		redis.pcall('lrem', list, 0, owner)
	end
end

-- wake removes from the list those waiters for whom there are permits if the others in front of them take
-- theirs, and wakes them. A waiter for more permits than are free stays, and others pass it. wake looks at
-- the first hundred. If it can remove none of them and more follow, it removes them all: dead waiters would
-- hide the others for ever, and a live one comes back when it asks. If idle is set, wake publishes nothing
-- on the channel unless there may be a reason to ask. ARGV[first - 1] and the reply are those of wake in
-- lib_wake.
local function wake(list, channel, first, taken, idle)
	local woken, stay = false, 0
	local waiters = redis.pcall('lrange', list, 0, 99)
	local more = #waiters == 100 and redis.call('llen', list) > 100
	for _, waiter in ipairs(waiters) do
		local name, permits, size = string.match(waiter, '^(.*):(%d+):(%d+)$')
		if not name or taken + permits <= tonumber(size) then
			redis.call('lrem', list, 1, waiter)
			local client = name and string.match(name, '^(.*):') or name
			if client and (publish(first, list .. ':' .. client, waiter) > 0 or ARGV[first - 1] == '') then
				woken = true
				taken = taken + permits
			end
		else
			stay = stay + 1
		end
	end
	for _ = 1, more and stay == 100 and 100 or 0 do
		redis.call('lpop', list)
	end
	if idle and not woken and not more then
		return 0
	end
	local heard = publish(first, channel, woken and '00' or '0')
	return woken and -1 or heard
end

-- tell publishes the name of a waiter on its client's channel. It reports whether the client hears it.
-- A server of a cluster does not count all subscribers: ARGV[first - 1] is empty then, and the waiter
-- counts as told.
local function tell(list, waiter, first)
	local name = string.gsub(waiter, ':write$', '')
	local client = string.match(name, '^(.*):') or name
	return publish(first, list .. ':' .. client, waiter) > 0 or ARGV[first - 1] == ''
end

-- wake removes those waiters from the list that can enter together, and tells them: the first one if
-- it writes, or the readers in front of the first writer. A writer whose client does not hear has
-- gone, and is skipped. While readers hold the lock, wake tells all readers in the list.
--
-- The message on the lock's channel is kind, which Redisson reads as a number: '0' wakes one waiter
-- of each of its processes, and '1' all. A zero in front of it says that waiters of ours were told.
-- The reply is -1 then, and otherwise the number of subscribers of the lock's channel.
local function wake(list, channel, first, kind, shared)
	local told = false
	local waiters = shared and redis.pcall('lrange', list, 0, -1)
	for _, waiter in ipairs(waiters or {}) do
		if waiter:sub(-6) ~= ':write' then
			redis.call('lrem', list, 1, waiter)
			told = tell(list, waiter, first) or told
		end
	end
	while not shared do
		local waiter = redis.pcall('lindex', list, 0)
		local writes = type(waiter) == 'string' and waiter:sub(-6) == ':write'
		if type(waiter) ~= 'string' or writes and told then
			break
		end
		redis.call('lpop', list)
		told = tell(list, waiter, first) or told
		if writes and told then
			break
		end
	end
	local heard = publish(first, channel, (told and '0' or '') .. kind)
	return told and -1 or heard
end

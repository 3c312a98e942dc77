-- wake removes waiters from the list until one hears its message. It publishes on the lock's channel
-- whether a waiter was woken. It returns -1 if so, and otherwise the number of subscribers of the
-- lock's channel. A server of a cluster does not count all subscribers: ARGV[first - 1] is empty
-- then, and the first waiter counts as woken.
local function wake(list, channel, first)
	local woken = false
	while not woken do
		local waiter = redis.pcall('lpop', list)
		if type(waiter) ~= 'string' then
			break
		end
		local client = string.match(waiter, '^(.*):') or waiter
		woken = publish(first, list .. ':' .. client, waiter) > 0 or ARGV[first - 1] == ''
	end
	local heard = publish(first, channel, woken and '00' or '0')
	return woken and -1 or heard
end

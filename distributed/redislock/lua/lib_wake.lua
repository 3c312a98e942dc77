-- wake takes waiters off the list until one hears its message, and tells the others whether they need to ask. It returns -1
-- if a waiter was told, and else how many connections heard the message to all. A server of a cluster cannot count who
-- hears it: ARGV[first - 1] is empty then, and the first waiter counts as told.
local function wake(list, channel, first)
	local told = false
	while not told do
		local waiter = redis.pcall('lpop', list)
		if type(waiter) ~= 'string' then
			break
		end
		local client = string.match(waiter, '^(.*):') or waiter
		told = publish(first, list .. ':' .. client, waiter) > 0 or ARGV[first - 1] == ''
	end
	local heard = publish(first, channel, told and '00' or '0')
	return told and -1 or heard
end

-- publish sends a message by the commands from ARGV[first] on. It returns how many subscribers of
-- this server hear the message. If a command is unknown or forbidden, the release counts all the
-- same, and the waiters ask after the poll interval.
local function publish(first, channel, payload)
	local heard = 0
	for i = first, #ARGV do
		local n = redis.pcall(ARGV[i], channel, payload)
		if type(n) == 'number' then
			heard = heard + n
		end
	end
	return heard
end

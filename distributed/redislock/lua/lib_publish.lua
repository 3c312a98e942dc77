-- publish sends a message by the commands from ARGV[first] on, and returns how many connections of this server hear it. A
-- command that is unknown or forbidden does not undo a release: the waiters ask again in turn.
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

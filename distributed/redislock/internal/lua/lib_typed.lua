-- typed calls a command on a key that may be of another type: then it returns false. Any other error
-- ends the script, because it says nothing about the key.
local function typed(...)
	local reply = redis.pcall(...)
	if type(reply) == 'table' and reply.err then
		if string.find(reply.err, 'WRONGTYPE', 1, true) then
			return false
		end
		reply = redis.call(...)
	end
	return reply
end

-- Takes all free permits, and replies how many these were.
--
-- KEYS free permits
local value, foreign = number(KEYS[1])
if foreign then
	return foreign
elseif value > 0 then
	redis.call('decrby', KEYS[1], value)
end
return value

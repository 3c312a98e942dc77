-- Takes permits if so many are free. The reply is whether they were.
--
-- KEYS free permits; ARGV permits
local value, foreign = number(KEYS[1])
if foreign then
	return foreign
elseif value < tonumber(ARGV[1]) then
	return 0
end
redis.call('decrby', KEYS[1], ARGV[1])
return 1

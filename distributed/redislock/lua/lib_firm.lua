-- firm makes sure that no later command of the script is refused because the memory is full. Redis
-- refuses no command of a script that has written, and firm writes what changes nothing. Scripts call
-- it that let go of something, or keep what there is. key is one of the request's: a sorted set, or
-- nothing.
local function firm(key) redis.pcall('zrem', key, '') end

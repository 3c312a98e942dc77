-- Replies with the token if the owner holds the lock, and else nothing.
--
-- KEYS lock [counter]; ARGV owner
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
	return false
end
return KEYS[2] and tonumber(redis.call('get', KEYS[2])) or 0

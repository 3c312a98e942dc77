-- Replies the token if the acquisition holds the lock, and otherwise nil.
--
-- KEYS lock [counter]; ARGV acquisition [, if a WAIT follows: 1]
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
	return false
end
touch(KEYS[1], ARGV[2])
return KEYS[2] and tonumber(redis.call('get', KEYS[2])) or 0

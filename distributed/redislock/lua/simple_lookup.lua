-- Replies 0 if the acquisition holds the lock, and otherwise nil.
--
-- KEYS lock; ARGV acquisition [, if a WAIT follows: 1]
if redis.call('get', KEYS[1]) == ARGV[1] then
	touch(KEYS[1], ARGV[2])
	return 0
end
return false

-- Replies 0 if the acquisition holds the read half, and otherwise nil.
--
-- KEYS lock; ARGV acquisition [, if a WAIT follows: 1]
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
	return false
end
touch(KEYS[1], ARGV[2])
return 0

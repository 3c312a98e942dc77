-- Replies 0 if the acquisition holds the read half, and otherwise nil.
--
-- KEYS lock; ARGV acquisition
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
	return false
end
touch(KEYS[1])
return 0

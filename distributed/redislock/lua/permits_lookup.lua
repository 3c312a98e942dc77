-- Replies 0 if the acquisition has permits, and otherwise nil.
--
-- KEYS semaphore; ARGV acquisition [, if a WAIT follows: 1]
local till = redis.call('zscore', KEYS[1], ARGV[1])
if not till or tonumber(till) <= now() then
	return false
end
touch(KEYS[1], ARGV[2])
return 0

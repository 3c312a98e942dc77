-- Acquires the lock if it is free, or if the acquisition holds it already. The reply is that of
-- wait_acquire. Other libraries publish nothing that a waiter could hear.
--
-- KEYS lock [list]; ARGV lease, acquisition [how]
local value = redis.call('get', KEYS[1])
if value and value ~= ARGV[2] then
	return refusal(redis.call('pttl', KEYS[1]), KEYS[2], ARGV[2], ARGV[3], 0)
end
redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[1])
unlist(KEYS[2], ARGV[2], ARGV[3])
return 0

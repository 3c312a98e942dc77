-- Acquires the lock if it is free, or if the acquisition holds it already. The reply is that of
-- hash_acquire.
--
-- KEYS lock; ARGV lease, acquisition
local value = redis.call('get', KEYS[1])
if value and value ~= ARGV[2] then
	return {redis.call('pttl', KEYS[1])}
end
redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[1])
return 0

-- Takes all permits from their holders. The reply is that of hash_force.
--
-- KEYS semaphore, channel; ARGV nothing, payload, publish commands
local holders = redis.call('zrangebyscore', KEYS[1], '(' .. string.format('%.0f', now()), '+inf')
redis.call('del', KEYS[1])
publish(3, KEYS[2], ARGV[2])
return holders

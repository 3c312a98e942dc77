-- Describes the lock. The reply is that of hash_inspect. The number of waiters is -1, for unknown.
--
-- KEYS lock
local value = redis.call('get', KEYS[1])
return {0, '0', value and {value, redis.call('pttl', KEYS[1])} or {}, {}, -1}

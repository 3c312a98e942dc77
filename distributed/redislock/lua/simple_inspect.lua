-- Describes the lock. The reply is that of hash_inspect.
--
-- KEYS lock, list of waiters
local value = redis.call('get', KEYS[1])
return {0, '0', value and {value, redis.call('pttl', KEYS[1])} or {}, waiters(KEYS[2])}

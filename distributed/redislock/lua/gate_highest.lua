-- Replies the highest token seen, or nil.
--
-- KEYS fence
return redis.call('get', KEYS[1])

-- Replies 0 if the acquisition holds the read half, and otherwise nil.
--
-- KEYS lock; ARGV acquisition
return redis.call('hexists', KEYS[1], ARGV[1]) == 1 and 0

-- KEYS lock; ARGV owner
return redis.call('hexists', KEYS[1], ARGV[1]) == 1 and 0

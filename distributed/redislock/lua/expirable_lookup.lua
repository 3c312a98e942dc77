-- Replies 0 if the acquisition has permits that last, and otherwise nil.
--
-- KEYS ends of leases; ARGV base
local till = redis.call('zscore', KEYS[1], id(ARGV[1], 0))
return till and tonumber(till) > now() and 0

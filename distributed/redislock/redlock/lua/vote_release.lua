-- Deletes a vote without a message: no waiter has to know of it. The hash has no other field, and so
-- ends with it. The reply is 1 if the server had the vote.
--
-- KEYS lock; ARGV acquisition
return typed('hdel', KEYS[1], ARGV[1]) or 0

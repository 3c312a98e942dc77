-- Acquires the lock like hash_acquire, or gives the acquisition a place in the list of waiters. The
-- reply to a refusal is that of refusal: a waiter hears the lock's channel if the holder is
-- Redisson's.
--
-- KEYS lock, list [counter]; ARGV lease, acquisition, how
local state, rest, holder = look(KEYS[1], ARGV[2])
if state == 'foreign' then
	return rest
elseif state == 'held' then
	return refusal(rest, KEYS[2], ARGV[2], ARGV[3], ours(holder) and 0 or 1)
end
local token = take(KEYS[1], ARGV[2], ARGV[1], KEYS[3])
unlist(KEYS[2], ARGV[2], ARGV[3])
return token

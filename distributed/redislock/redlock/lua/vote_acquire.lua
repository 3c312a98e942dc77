-- Acquires a plain lock like hash_acquire. A refusal also replies the holder.
--
-- KEYS lock; ARGV lease, acquisition
local state, rest = look(KEYS[1], ARGV[2])
if state == 'held' then
	return {rest, redis.call('hkeys', KEYS[1])[1]}
elseif state == 'foreign' then
	return rest
end
return take(KEYS[1], ARGV[2], ARGV[1])

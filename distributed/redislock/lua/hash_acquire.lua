-- Takes the lock if it is free or the owner's already. The reply is the token, 0 without a counter; or the time to live of
-- another's hold, in a list.
--
-- KEYS lock [counter]; ARGV lease, owner
local state, rest = look(KEYS[1], ARGV[2])
if state == 'held' then
	return {rest}
elseif state == 'foreign' then
	return rest
end
return take(KEYS[1], ARGV[2], ARGV[1], KEYS[2])

-- Acquires the lock if it is free, or if the acquisition holds it already. The reply is the token,
-- which is 0 without a counter. A refusal replies a list with the time to live of the hold.
--
-- KEYS lock [counter]; ARGV lease, acquisition
local state, rest = look(KEYS[1], ARGV[2])
if state == 'held' then
	return {rest}
elseif state == 'foreign' then
	return rest
end
return take(KEYS[1], ARGV[2], ARGV[1], KEYS[2])

-- Describes a lock with one holder. The reply is a list: 0, because no lock of this kind is shared;
-- the token, which is 0 without a counter; the holder and the time to live of its hold, or nothing;
-- the first thousand waiters in order of arrival; the number of all waiters.
--
-- KEYS lock, list of waiters [counter]
local state, ttl, holder = look(KEYS[1])
if state == 'foreign' then
	return ttl
end
if state == 'free' then
	return {0, '0', {}, waiters(KEYS[2])}
end
return {0, KEYS[3] and redis.call('get', KEYS[3]) or '0', {holder, ttl}, waiters(KEYS[2])}

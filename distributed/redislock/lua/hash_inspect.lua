-- Describes a lock with one holder. The reply is a list: 0, because no lock of this kind is shared;
-- the token, which is 0 without a counter; the holder and the time to live of its hold, or nothing;
-- the first thousand waiters in order of arrival; the number of all waiters.
--
-- KEYS lock, list of waiters [counter]
local state, ttl, holder = look(KEYS[1])
if state == 'foreign' then
	return ttl
end
local waiters, n = typed('lrange', KEYS[2], 0, 999) or {}, typed('llen', KEYS[2]) or 0
if state == 'free' then
	return {0, '0', {}, waiters, n}
end
return {0, KEYS[3] and redis.call('get', KEYS[3]) or '0', {holder, ttl}, waiters, n}

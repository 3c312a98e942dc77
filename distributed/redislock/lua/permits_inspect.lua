-- Describes a semaphore. The reply is that of hash_inspect, with 1 instead of 0 if there are several
-- holders. Behind the name of each holder and waiter are permits and size. The size of a holder is 0.
--
-- KEYS semaphore, list of waiters
local holders, at = {}, now()
local all = redis.call('zrangebyscore', KEYS[1], '(' .. string.format('%.0f', at), '+inf', 'WITHSCORES')
for i = 1, #all, 2 do
	local n = -(redis.call('zscore', KEYS[1], 'n ' .. all[i]) or 0)
	table.insert(holders, all[i] .. ':' .. string.format('%.0f', n) .. ':0')
	table.insert(holders, all[i + 1] - at)
end
return {#holders > 2 and 1 or 0, '0', holders, waiters(KEYS[2])}

-- refused returns the reply to a request that the holders of a read-write lock refuse. rest is the time to
-- live of the lock. A waiter hears the lock's channel if a holder is Redisson's: of many holders, some are
-- looked at.
local function refused(lock, rest, list, owner, how)
	local hears = 0
	for i, field in ipairs(list and redis.call('hscan', lock, 0, 'count', 16)[2] or {}) do
		if i % 2 == 1 and field ~= 'mode' and not ours(field) then
			hears = 1
		end
	end
	return refusal(rest, list, owner, how, hears)
end

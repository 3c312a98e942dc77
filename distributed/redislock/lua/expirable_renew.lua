-- Renews the permits, as updateLeaseTime does. The reply is that of hash_renew. Nobody has to collect what
-- has lapsed: that is another acquisition's.
--
-- KEYS ends of leases; ARGV lease, bases
local held, at = {}, now()
for k, ends in ipairs(KEYS) do
	local i, base = 0, ARGV[k + 1]
	local till = typed('zscore', ends, id(base, 0))
	held[k] = till and tonumber(till) > at and 1 or 0
	if held[k] == 1 then
		firm(ends)
	end
	while held[k] == 1 and redis.call('zscore', ends, id(base, i)) do
		redis.call('zadd', ends, at + ARGV[1] + 1, id(base, i))
		i = i + 1
	end
end
return held

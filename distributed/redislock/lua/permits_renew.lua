-- Renews the holds. The reply is that of hash_renew.
--
-- KEYS semaphores; ARGV lease, acquisitions
local held, at = {}, now()
for i, key in ipairs(KEYS) do
	local till = typed('zscore', key, ARGV[i + 1])
	held[i] = till and tonumber(till) > at and 1 or 0
	if held[i] == 1 then
		firm(key)
		hold(key, ARGV[i + 1], at, tonumber(ARGV[1]))
	end
end
return held

-- Renews the holds for the lease from now. The reply is a list: 1 for each hold that lasts, 0 for
-- each that is gone.
--
-- KEYS locks; ARGV lease, acquisitions
local held = {}
for i, lock in ipairs(KEYS) do
	held[i] = 0
	if typed('hexists', lock, ARGV[i + 1]) == 1 then
		held[i] = redis.call('pexpire', lock, ARGV[1])
	end
end
return held

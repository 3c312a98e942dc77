-- Renews the holds. The reply is that of hash_renew.
--
-- KEYS locks; ARGV lease, acquisitions
local held = {}
for i, lock in ipairs(KEYS) do
	held[i] = 0
	if typed('get', lock) == ARGV[i + 1] then
		held[i] = redis.call('pexpire', lock, ARGV[1])
	end
end
return held

-- Renews the readers' holds, and the lock if it would end before them. The reply is that of
-- hash_renew.
--
-- KEYS locks, holds; ARGV lease, acquisitions
local held, n, lease = {}, #KEYS / 2, tonumber(ARGV[1])
for i = 1, n do
	held[i] = 0
	if typed('hexists', KEYS[i], ARGV[i + 1]) == 1 and redis.call('exists', KEYS[n + i]) == 1 then
		held[i] = 1
		if redis.call('pttl', KEYS[i]) < lease then -- before the hold, as in read_acquire
			redis.call('pexpire', KEYS[i], lease)
		end
		redis.call('pexpire', KEYS[n + i], lease)
	end
end
return held

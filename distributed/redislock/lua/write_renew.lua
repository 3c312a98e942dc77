-- Renews the writers' holds. A writer may read too, and its hold as a reader may last longer: then the lock
-- lasts as long. The reply is that of hash_renew.
--
-- KEYS locks, prefixes of all holds; ARGV lease, acquisitions:write
local held, n, lease = {}, #KEYS / 2, tonumber(ARGV[1])
for i = 1, n do
	held[i] = 0
	if typed('hexists', KEYS[i], ARGV[i + 1]) == 1 then
		local reads = redis.call('hlen', KEYS[i]) > 2 and limit(KEYS[i], KEYS[n + i])
		if not reads or redis.call('pttl', KEYS[i]) < lease then
			redis.call('pexpire', KEYS[i], lease)
		end
		held[i] = 1
	end
end
return held

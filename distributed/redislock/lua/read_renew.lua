-- Renews the readers' holds, and the lock if it would end before them. If the longest hold becomes shorter,
-- so does the lock. The reply is that of hash_renew.
--
-- KEYS locks, holds; ARGV lease, acquisitions
local held, n, lease = {}, #KEYS / 2, tonumber(ARGV[1])
for i = 1, n do
	local lock, hold = KEYS[i], KEYS[n + i]
	held[i] = 0
	if typed('hexists', lock, ARGV[i + 1]) == 1 and redis.call('exists', hold) == 1 then
		held[i] = 1
		local before, rest = redis.call('pttl', hold), redis.call('pttl', lock)
		if rest < lease then -- before the hold, as in read_acquire
			redis.call('pexpire', lock, lease)
		end
		redis.call('pexpire', hold, lease)
		if rest > lease and before >= rest and redis.call('hget', lock, 'mode') == 'read' then
			limit(lock, string.sub(hold, 1, -#(':' .. ARGV[i + 1] .. ':rwlock_timeout:1') - 1))
		end
	end
end
return held

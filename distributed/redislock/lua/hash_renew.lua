-- Replies with a list of which holds last for the lease from now.
--
-- KEYS locks; ARGV lease, owners
local held = {}
for i, lock in ipairs(KEYS) do
	held[i] = 0
	if redis.pcall('hexists', lock, ARGV[i + 1]) == 1 then
		held[i] = redis.call('pexpire', lock, ARGV[1])
	end
end
return held

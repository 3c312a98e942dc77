-- touch writes what is there already. A WAIT after it counts the replicas that have the lock.
local function touch(lock)
	local ttl = redis.call('pttl', lock)
	if ttl > 0 then
		redis.call('pexpire', lock, ttl)
	end
end

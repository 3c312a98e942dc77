-- touch writes what is there already, if a WAIT follows. That then counts the replicas that have the
-- lock.
local function touch(lock, waits)
	local ttl = waits and redis.call('pttl', lock) or 0
	if ttl > 0 then
		redis.call('pexpire', lock, ttl)
	end
end

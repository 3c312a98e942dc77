-- Acquires the lock if the acquisition holds it already, or if the lock is free and nobody is
-- before it in the queue. Otherwise an acquisition that waits has a place in the queue from then
-- on. The reply is that of hash_acquire. If the lock is free, and the acquisition is not the head
-- of the queue, the reply is the time after which the head counts as dead.
--
-- KEYS lock, queue, times; ARGV lease, acquisition, wait or -1, channel, whether the server counts
-- subscribers, publish commands
local owner, wait, channel = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local state, rest = look(lock, owner)
if state == 'foreign' then
	return rest
end
local head, dies = sweep(wait >= 0 and owner or nil)
if state == 'mine' or state == 'free' and (not head or head == owner) then
	if head == owner then
		redis.call('lpop', queue)
		redis.call('zrem', times, owner)
		local behind = close(0, wait) -- true if times have changed
		if behind == true or behind and not ours(redis.call('lindex', queue, -1)) then
			keep() -- a waiter of Redisson does not make the queue last
		end
	end
	return take(lock, owner, ARGV[1])
end
local ttl = rest or 0
if wait >= 0 then
	local mine = math.max(ttl, 0) + wait + now()
	local known
	if head == owner or head and redis.call('lpos', queue, owner) then
		known = tonumber(redis.call('zscore', times, owner) or nil)
	else
		local last = head and redis.call('lindex', queue, -1)
		local before = tonumber(last and redis.call('zscore', times, last) or nil)
		if before and ours(last) then
			mine = math.max(mine, before)
		elseif before then -- Redisson's subtracts its wait from all times behind it when it acquires
			mine = math.max(mine, before + wait)
		end
		redis.call('rpush', queue, owner)
	end
	if not known or known < mine - wait / 4 then
		if known then
			firm(times) -- the place is there already
		end
		redis.call('zadd', times, mine, owner)
		keep()
	end
	if state == 'free' then
		tell(6, channel, head, owner)
		head, dies = sweep(owner)
	end
end
if state == 'free' then
	return {math.max(math.ceil((dies or now()) - now()), 1)}
end
return {ttl}

-- Describes a read-write lock. The reply is that of hash_inspect: 1 instead of 0 if readers hold the
-- lock, and all holders, each with the time to live of its longest hold. A writer that also reads
-- counts once. The name of a waiting writer ends with :write.
--
-- KEYS lock, list of waiters; ARGV prefix of the keys of holds
local mode, holders = redis.call('hget', KEYS[1], 'mode'), {}
if not mode and redis.call('exists', KEYS[1]) == 1 then
	return redis.error_reply('FOREIGN the lock is no read-write lock')
end
for _, field in ipairs(mode and redis.call('hkeys', KEYS[1]) or {}) do
	local ttl
	if mode == 'write' and field:sub(-6) == ':write' then
		ttl = redis.call('pttl', KEYS[1])
	elseif mode == 'read' and field ~= 'mode' then
		ttl = 0
		for n = 1, math.min(tonumber(redis.call('hget', KEYS[1], field)) or 0, 10000) do
			ttl = math.max(ttl, redis.call('pttl', ARGV[1] .. ':' .. field .. ':rwlock_timeout:' .. n))
		end
	end
	if ttl then
		table.insert(holders, field)
		table.insert(holders, ttl)
	end
end
return {mode == 'read' and 1 or 0, '0', holders, waiters(KEYS[2])}

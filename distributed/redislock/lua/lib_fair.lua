local lock, queue, times = KEYS[1], KEYS[2], KEYS[3]
local grace = 750 -- milliseconds in which a waiter that does not hear can come back
local doubt = 10000 -- the same if a server of a cluster does not know whether the waiter hears

-- now returns the time in milliseconds since 1970. It is the same for the whole script.
local time
local function now()
	if not time then
		local t = redis.call('time')
		time = t[1] * 1000 + math.floor(t[2] / 1000)
	end
	return time
end

-- sweep removes dead waiters from the head of the queue. It returns the head, and the time when the
-- head counts as dead. It does not remove me, and does not read the time of me.
local function sweep(me)
	while true do
		local head = redis.call('lindex', queue, 0)
		if not head or head == me then
			return head
		end
		local dies = tonumber(redis.call('zscore', times, head) or nil)
		if dies and dies > now() then
			return head, dies
		end
		redis.call('lpop', queue)
		redis.call('zrem', times, head)
	end
end

-- tell wakes the first waiter whose channel has a subscriber. The waiters before that one count as
-- dead after the grace, all at the same time. A server of a cluster does not count all subscribers:
-- ARGV[first - 1] is empty then, and the head counts as woken. One of ours has the time doubt to ask,
-- even if the lease of the former holder was longer. head is the first waiter. me is awake and needs
-- no message. tell returns whether there is a waiter.
local function tell(first, channel, head, me)
	local waiter, i = head, 0
	while true do
		if not waiter then
			return i > 0
		end
		if waiter == me or publish(first, channel .. ':' .. waiter, '0') > 0 then
			return true
		end
		local counts = ARGV[first - 1] ~= ''
		if not counts and not ours(waiter) then
			return true -- Redisson's waiter does not renew its time
		end
		local rest = counts and grace or doubt
		local dies = tonumber(redis.call('zscore', times, waiter) or nil)
		if not dies or dies > now() + rest then
			redis.call('zadd', times, now() + rest, waiter)
		end
		if not counts then
			return true
		end
		i = i + 1
		waiter = redis.call('lindex', queue, i)
	end
end

-- close is called when a waiter of ours has left the queue at index i. A waiter of Redisson adds its
-- wait to the time of the one before it, and so do all waiters behind it. close subtracts that wait
-- when the last of our waiters in a row has left, as Redisson does for each of its own. That must not
-- leave less time to a waiter than will be subtracted before its turn: its time is too short if it
-- came when tell had shortened the time of the one before it, and that one has come back since. close
-- returns whether there is a waiter behind.
local function close(i, wait)
	local after = redis.call('lindex', queue, i)
	if not after or ours(after) then
		return after
	end
	local before = i > 0 and redis.call('lindex', queue, i - 1)
	if not before or not ours(before) then
		local behind, least = redis.call('lrange', queue, i, -1), now()
		for j, waiter in ipairs(behind) do
			if not ours(waiter) or not ours(behind[j - 1]) then
				least = least + wait
			end
			local dies = tonumber(redis.call('zincrby', times, -wait, waiter))
			if dies > 0 and dies < least then
				redis.call('zadd', times, least, waiter)
			end
		end
	end
	return true
end

-- keep makes the queue expire with the time of its last waiter. If that is a waiter of Redisson, the
-- queue does not expire, because Redisson would not renew it.
local function keep()
	local last = redis.call('zrange', times, -1, -1, 'withscores')
	local dies = tonumber(last[2] or nil)
	for _, key in ipairs({queue, times}) do
		if dies and ours(last[1]) then
			redis.call('pexpire', key, math.max(math.ceil(dies - now()), 0) + 1000)
		elseif dies then
			redis.call('persist', key)
		end
	end
end

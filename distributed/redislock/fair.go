package redislock

import (
	"context"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// The state of a fair lock, Redisson's RFairLock: the hash of a plain lock, a list of the owners that wait, the head first, and
// a sorted set that says of each when it counts as dead, in milliseconds since 1970. Each of them listens on a channel
// of its own, where a release by the one before it publishes 0. List and set never expire.
//
// Redisson takes the time from its own clock, here it is the server's. It also differs in that a waiter moves its time of
// death whenever it asks, so that it keeps its place however long the lock is held; in that an owner in the
// list without such a time counts as dead, one in the set only returns to the list; and in that whoever removes the dead
// while the lock is free tells the next one. All that is harmless to Redisson's clients.

// fairSweep removes the dead from the head of the queue, and tells the next one if the lock is free.
//
// KEYS lock, queue, times
const fairSweep = `
local lock, queue, times = KEYS[1], KEYS[2], KEYS[3]
local now = redis.call('time')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local function tell(channel, first)
	local head = redis.call('lindex', queue, 0)
	if head then
		for i = first, #ARGV do
			redis.pcall(ARGV[i], channel .. ':' .. head, '0')
		end
	end
	return head
end
local function sweep(channel, first, me)
	local swept = false
	while true do
		local head = redis.call('lindex', queue, 0)
		if not head then
			break
		end
		local time = redis.call('zscore', times, head)
		if head == me or time and tonumber(time) > now then
			break
		end
		redis.call('lpop', queue)
		redis.call('zrem', times, head)
		swept = true
	end
	if swept and redis.call('exists', lock) == 0 then
		tell(channel, first)
	end
end
local function earlier(from, wait)
	for _, waiter in ipairs(redis.call('lrange', queue, from, -1)) do
		if redis.call('zscore', times, waiter) then
			redis.call('zincrby', times, -wait, waiter)
		end
	end
end
`

// fairAcquire takes the lock if it is the owner's already, or free and nobody is before the owner in the queue. Otherwise the
// owner has a place there from then on, if it waits. The reply is that of hashAcquire.
//
// KEYS lock, queue, times; ARGV lease, owner, wait or -1, channel, publish commands
var fairAcquire = newScript(fairSweep + `
local lease, owner, wait, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local mine = redis.call('hexists', lock, owner) == 1
sweep(channel, 5, wait >= 0 and owner or nil)
local head = redis.call('lindex', queue, 0)
if mine or redis.call('exists', lock) == 0 and (not head or head == owner) then
	if head == owner then
		redis.call('lpop', queue)
		redis.call('zrem', times, owner)
		earlier(0, math.max(wait, 0))
	end
	redis.call('hset', lock, owner, 1)
	redis.call('pexpire', lock, lease)
	return 0
end
if redis.call('hexists', lock, 'mode') == 1 then
	return redis.error_reply('FOREIGN the lock is a read-write lock')
end
local ttl = redis.call('pttl', lock)
if wait < 0 then
	return {ttl}
end
local place, last = false, nil
for _, waiter in ipairs(redis.call('lrange', queue, 0, -1)) do
	place = place or waiter == owner
	last = waiter
end
local dies = math.max(ttl, 0) + wait + now
if not place then
	local before = last and redis.call('zscore', times, last)
	if before then
		dies = math.max(dies, tonumber(before) + wait)
	end
	redis.call('rpush', queue, owner)
end
local known = redis.call('zscore', times, owner)
if not known or tonumber(known) < dies then
	redis.call('zadd', times, dies, owner)
end
return {ttl}
`)

// fairLeave removes the owner from the queue, and tells the next one if the lock is free: it was the owner perhaps who was told.
//
// KEYS lock, queue, times; ARGV owner, wait, channel, publish commands
var fairLeave = newScript(fairSweep + `
local owner = ARGV[1]
for i, waiter in ipairs(redis.call('lrange', queue, 0, -1)) do
	if waiter == owner then
		earlier(i, tonumber(ARGV[2]))
		break
	end
end
redis.call('lrem', queue, 0, owner)
redis.call('zrem', times, owner)
sweep(ARGV[3], 4, nil)
if redis.call('exists', lock) == 0 then
	tell(ARGV[3], 4)
end
return 0
`)

// fairRelease frees the lock and tells the next one. The reply is 1 if there is one, and nothing if the lock was not the owner's.
//
// KEYS lock, queue, times; ARGV owner, channel, publish commands
var fairRelease = newScript(fairSweep + `
local held = redis.pcall('hdel', lock, ARGV[1])
sweep(ARGV[2], 3, nil)
if held ~= 1 then
	return false
end
return tell(ARGV[2], 3) and 1 or 0
`)

// fairWait is for how long beyond the lease a waiter counts as alive that does not ask. Redisson has five minutes.
const fairWait = 30 * time.Second

// fair is the [lease.Store] of fair locks.
type fair struct {
	c    *core
	wait time.Duration
}

var (
	_ lease.Store   = (*fair)(nil)
	_ lease.Queue   = (*fair)(nil)
	_ lease.Breaker = (*fair)(nil)
)

const fairChannel = "redisson_lock__channel"

// eval runs s for the lock called name. The last arguments are by which commands to publish.
func (s *fair) eval(ctx context.Context, sc *script, name string, args ...any) (any, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil, err
	}
	all := []any{head - 1: nil, name, prefixed("redisson_lock_queue", name), prefixed("redisson_lock_timeout", name)}
	all = append(append(all, args...), prefixed(fairChannel, name))
	if m != sharded {
		all = append(all, "publish")
	}
	if m != classic {
		all = append(all, "spublish")
	}
	return s.c.p.Eval(ctx, sc, 3, all)
}

func (s *fair) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	return granted(s.eval(ctx, fairAcquire, name, millis(d), owner, -1))
}

func (s *fair) Enqueue(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	return granted(s.eval(ctx, fairAcquire, name, millis(d), owner, millis(s.wait)))
}

func (s *fair) Leave(ctx context.Context, name, owner string) error {
	_, err := s.eval(ctx, fairLeave, name, owner, millis(s.wait))
	return err
}

func (s *fair) Lookup(ctx context.Context, name, owner string) (lease.Reply, error) {
	r, err := s.c.p.Eval(ctx, hashRecall, 1, []any{head - 1: nil, name, owner})
	if err == nil && r == nil {
		return lease.Reply{}, nil
	}
	return granted(r, err)
}

func (s *fair) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	return s.c.renew(ctx, hashRenew, holds, d, "", nil)
}

func (s *fair) Release(ctx context.Context, name, owner string) (lease.Released, error) {
	r, err := s.eval(ctx, fairRelease, name, owner)
	if err != nil || r == nil {
		return lease.Released{}, err
	}
	return lease.Released{Held: true, Awaited: r == int64(1)}, nil
}

// fairForce frees the lock whoever holds it, and tells the head of the queue. The reply is that of hashForce.
//
// KEYS lock, queue, times; ARGV channel, publish commands
var fairForce = newScript(fairSweep + lockLike + `
if redis.call('exists', lock) == 0 then
	return 0
end
if not lockLike(lock) then
	return redis.error_reply('FOREIGN it is no lock')
end
redis.call('del', lock)
sweep(ARGV[1], 2, nil)
tell(ARGV[1], 2)
return 1
`)

func (s *fair) Break(ctx context.Context, name string) (bool, error) {
	r, err := s.eval(ctx, fairForce, name)
	return r == int64(1), err
}

func (s *fair) Watch(ctx context.Context, name, owner string) (lease.Watch, error) {
	return s.c.watch(ctx, prefixed(fairChannel, name)+":"+owner)
}

package redislock

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The state of a read-write lock, Redisson's RReadWriteLock: a hash with the mode, read or write, and a field for each holder: a
// reader, or the writer with :write behind its name. For each hold of a reader there is a key that expires with it. One channel
// tells of both halves: 0 when the last reader has left, 1 when the writer has.

// KEYS lock; ARGV lease, owner:write
var writeAcquire = newScript(`
local lock, owner = KEYS[1], ARGV[2]
if redis.call('exists', lock) == 1 then
	local mode = redis.call('hget', lock, 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= 'write' or redis.call('hexists', lock, owner) == 0 then
		return {redis.call('pttl', lock)}
	end
end
redis.call('hset', lock, 'mode', 'write', owner, 1)
redis.call('pexpire', lock, ARGV[1])
return 0
`)

// If readers are left, which Redisson's writer may have been too, they keep the lock, and others are told that they may join them.
//
// KEYS lock, channel; ARGV owner:write, payload, publish commands
var writeRelease = newScript(`
if redis.pcall('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
if redis.call('hlen', KEYS[1]) > 1 then
	redis.call('hset', KEYS[1], 'mode', 'read')
else
	redis.call('del', KEYS[1])
end
` + publish + `
return heard
`)

// KEYS lock, hold; ARGV lease, owner
var readAcquire = newScript(`
local lock, lease = KEYS[1], tonumber(ARGV[1])
if redis.call('exists', lock) == 1 then
	local mode = redis.call('hget', lock, 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= 'read' then
		return {redis.call('pttl', lock)}
	end
end
redis.call('hset', lock, 'mode', 'read', ARGV[2], 1)
redis.call('set', KEYS[2], 1, 'PX', lease)
if redis.call('pttl', lock) < lease then
	redis.call('pexpire', lock, lease)
end
return 0
`)

// KEYS lock; ARGV owner
var readRecall = newScript(`
return redis.call('hexists', KEYS[1], ARGV[1]) == 1 and 0
`)

// KEYS locks, holds; ARGV lease, owners
var readRenew = newScript(`
local held, n, lease = {}, #KEYS / 2, tonumber(ARGV[1])
for i = 1, n do
	held[i] = 0
	if redis.pcall('hexists', KEYS[i], ARGV[i + 1]) == 1 and redis.call('pexpire', KEYS[n + i], lease) == 1 then
		held[i] = 1
		if redis.call('pttl', KEYS[i]) < lease then
			redis.call('pexpire', KEYS[i], lease)
		end
	end
end
return held
`)

// The lock is free when no reader is left whose hold has not expired. Else it lasts as long as the longest of their holds.
//
// KEYS lock, channel, hold, prefix of all holds; ARGV owner, payload, publish commands
var readRelease = newScript(`
local lock = KEYS[1]
if redis.pcall('hdel', lock, ARGV[1]) ~= 1 then
	return false
end
redis.call('del', KEYS[3])
if redis.call('hget', lock, 'mode') == 'write' then
	return 0
end
local longest = 0
for _, reader in ipairs(redis.call('hkeys', lock)) do
	for n = 1, tonumber(redis.call('hget', lock, reader)) or 0 do
		longest = math.max(longest, redis.call('pttl', KEYS[4] .. ':' .. reader .. ':rwlock_timeout:' .. n))
	end
end
if longest > 0 then
	redis.call('pexpire', lock, longest)
	return 0
end
redis.call('del', lock)
` + publish + `
return heard
`)

const rwChannel = "redisson_rwlock"

func newWrite(c *core) *single {
	return &single{
		c:       c,
		acquire: writeAcquire,
		recall:  hashRecall,
		renew:   hashRenew,
		release: writeRelease,
		channel: rwChannel,
		payload: wakeAll,
		suffix:  ":write",
	}
}

// readers is the [lease.Store] of the read halves.
type readers struct{ c *core }

var _ lease.Store = readers{}

func readHold(name, owner string) string { return suffixed(name, owner+":rwlock_timeout:1") }

func (s readers) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	return granted(s.c.p.eval(ctx, readAcquire, 2, []any{head - 1: nil, name, readHold(name, owner), millis(d), owner}))
}

func (s readers) Recall(ctx context.Context, name, owner string) (lease.Reply, error) {
	r, err := s.c.p.eval(ctx, readRecall, 1, []any{head - 1: nil, name, owner})
	if err == nil && r == nil {
		return lease.Reply{}, nil
	}
	return granted(r, err)
}

func (s readers) Renew(ctx context.Context, holds []lease.Ref, d time.Duration) ([]bool, error) {
	return s.c.renew(ctx, readRenew, holds, d, "", func(h lease.Ref) any { return readHold(h.Name, h.Owner) })
}

func (s readers) Release(ctx context.Context, name, owner string) (lease.Released, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return lease.Released{}, err
	}
	channel := prefixed(rwChannel, name)
	prefix := suffixed(name, "")
	args := []any{head - 1: nil, name, channel, readHold(name, owner), prefix[:len(prefix)-1], owner, wakeOne}
	if m != sharded {
		args = append(args, "publish")
	}
	if m != classic {
		args = append(args, "spublish")
	}
	r, err := s.c.p.eval(ctx, readRelease, 4, args)
	return s.c.released(r, err, channel)
}

func (s readers) Watch(ctx context.Context, name, _ string) (lease.Watch, error) {
	return s.c.watch(ctx, prefixed(rwChannel, name))
}

// RWLock is a read-write lock: any number of readers, or one writer, among all processes.
//
// It has no order: readers that come and go can keep a writer waiting. Who holds one half cannot have the other as well: a reader that asks
// to write gets [locks.ErrUpgrade], and a writer that asks to read [locks.ErrDeadlock], instead of waiting for itself.
type RWLock struct{ read, write *Lock }

var _ locks.ReadWriteLocker = (*RWLock)(nil)

// ReadWriteLocker returns the read-write lock called name, Redisson's RReadWriteLock.
func (c *Client) ReadWriteLocker(name string, opts ...lease.LockOption) *RWLock {
	l := &RWLock{
		read:  c.lock(reading, name, append([]lease.LockOption{lease.Shared()}, opts...)),
		write: c.lock(writing, name, opts),
	}
	l.read.other, l.read.both = l.write.Lock, locks.ErrDeadlock
	l.write.other, l.write.both = l.read.Lock, locks.ErrUpgrade
	return l
}

// ReadLocker returns the half that readers share. It is a [*Lock].
func (l *RWLock) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the half of the writer. It is a [*Lock].
func (l *RWLock) WriteLocker() locks.TryLocker { return l.write }

package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// longest has the time to live of the longest hold of the readers, 0 if there is none. Readers whose holds have expired have a
// field still. Of one reader it looks at ten thousand holds at most, more than there ever are, since nothing could end a script that
// believed whatever number it finds.
//
// KEYS lock, channel, prefix of all holds
const longest = `
local longest = 0
for _, reader in ipairs(redis.call('hkeys', KEYS[1])) do
	if reader ~= 'mode' then
		for n = 1, math.min(tonumber(redis.call('hget', KEYS[1], reader)) or 0, 10000) do
			longest = math.max(longest, redis.call('pttl', KEYS[3] .. ':' .. reader .. ':rwlock_timeout:' .. n))
		end
	end
end
`

// If the writer reads too, it keeps the lock as a reader, as long as that hold lasts. In either case all who wait are told: other
// readers may come in. Redisson tells nobody in the former case, so that they come when the time is over that they were told first.
//
// KEYS lock, channel, prefix of all holds; ARGV owner:write, payload, publish commands
var writeRelease = newScript(`
if redis.pcall('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
` + longest + `
if longest > 0 then
	redis.call('hset', KEYS[1], 'mode', 'read')
	redis.call('pexpire', KEYS[1], longest)
else
	redis.call('del', KEYS[1])
end
` + publish + `
return heard
`)

// The writer may read: whose name is the last argument, if the asker holds the other half.
//
// KEYS lock, hold; ARGV lease, owner[, owner:write]
var readAcquire = newScript(`
local lock, lease = KEYS[1], tonumber(ARGV[1])
if redis.call('exists', lock) == 1 then
	local mode = redis.call('hget', lock, 'mode')
	if not mode then
		return redis.error_reply('FOREIGN the lock is no read-write lock')
	end
	if mode ~= 'read' and not (ARGV[3] and redis.call('hexists', lock, ARGV[3]) == 1) then
		return {redis.call('pttl', lock)}
	end
end
redis.call('hsetnx', lock, 'mode', 'read')
redis.call('hset', lock, ARGV[2], 1)
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

// The lock is free when no reader is left whose hold has not expired, and no writer. Else it lasts as long as the longest of their holds.
//
// KEYS lock, channel, prefix of all holds, hold; ARGV owner, payload, publish commands
var readRelease = newScript(`
local lock = KEYS[1]
if redis.pcall('hdel', lock, ARGV[1]) ~= 1 then
	return false
end
redis.call('del', KEYS[4])
if redis.call('hget', lock, 'mode') == 'write' then
	return 0
end
` + longest + `
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
		beside:  holdPrefix,
		force:   writeForce,
	}
}

// readers is the [lease.Store] of the read halves.
type readers struct{ c *core }

var (
	_ lease.Store   = readers{}
	_ lease.Breaker = readers{}
)

func readHold(name, owner string) string { return suffixed(name, owner+":rwlock_timeout:1") }

// holdPrefix is what the names of all readers' holds have in front of a colon.
func holdPrefix(name string) string { return strings.TrimSuffix(suffixed(name, ""), ":") }

// writer is the key in a context of the name of the acquisition by which the asker holds the write half.
type writer struct{}

func (s readers) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	args := []any{head - 1: nil, name, readHold(name, owner), millis(d), owner}
	if w, ok := ctx.Value(writer{}).(string); ok {
		args = append(args, w+":write")
	}
	return granted(s.c.p.Eval(ctx, readAcquire, 2, args))
}

func (s readers) Lookup(ctx context.Context, name, owner string) (lease.Reply, error) {
	r, err := s.c.p.Eval(ctx, readRecall, 1, []any{head - 1: nil, name, owner})
	if err == nil && r == nil {
		return lease.Reply{}, nil
	}
	return granted(r, err)
}

func (s readers) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	return s.c.renew(ctx, readRenew, holds, d, "", func(h lease.HoldID) any { return readHold(h.Name, h.Acquisition) })
}

func (s readers) Release(ctx context.Context, name, owner string) (lease.Released, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return lease.Released{}, err
	}
	channel := prefixed(rwChannel, name)
	args := []any{head - 1: nil, name, channel, holdPrefix(name), readHold(name, owner), owner, wakeOne}
	if m != sharded {
		args = append(args, "publish")
	}
	if m != classic {
		args = append(args, "spublish")
	}
	r, err := s.c.p.Eval(ctx, readRelease, 4, args)
	return s.c.released(r, err, channel)
}

func (s readers) Break(ctx context.Context, name string) (bool, error) {
	return s.c.force(ctx, readForce, name, prefixed(rwChannel, name), holdPrefix(name), wakeOne)
}

func (s readers) Watch(ctx context.Context, name, _ string) (lease.Watch, error) {
	return s.c.watch(ctx, prefixed(rwChannel, name))
}

// RWMutex is a read-write lock: any number of readers, or one writer, among all processes.
//
// It has no order: readers that come and go can keep a writer waiting. The writer may read as well, and so become a reader: it
// takes the read half, and then unlocks the write half, so that nobody else has written in between; other readers are told
// then. A reader that asks to write gets [locks.ErrUpgrade], instead of waiting for itself.
//
// A hold of either half is renewed, lost, and released on its own.
type RWMutex struct{ read, write *Mutex }

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// RWMutex returns the read-write lock called name, Redisson's RReadWriteLock.
func (c *Client) RWMutex(name string, opts ...lease.MutexOption) *RWMutex {
	l := &RWMutex{
		read:  c.lock(reading, name, append([]lease.MutexOption{lease.Shared()}, opts...)),
		write: c.lock(writing, name, opts),
	}
	l.read.prepare, l.write.prepare = l.asWriter, l.noReader
	return l
}

// asWriter lets the owner of ctx read that holds the write half: the server is told as whom. From then on the write half is given
// back to the server when it is unlocked, not to the next one who waits here: that one would write while this owner
// reads. That is decided before the server is asked, so that an unlock at the same time comes to the same: the server sees
// one before the other.
func (l *RWMutex) asWriter(ctx context.Context) (context.Context, error) {
	owner, err := l.write.Mutex.Pin(ctx)
	switch {
	case err == nil:
		return context.WithValue(ctx, writer{}, owner), nil
	case errors.Is(err, locks.ErrNotHeld):
		return ctx, nil
	}
	return nil, err
}

// noReader refuses an owner that reads, and does not write.
func (l *RWMutex) noReader(ctx context.Context) (context.Context, error) {
	if _, err := l.read.Mutex.Hold(ctx); err != nil {
		return ctx, nil
	}
	if _, err := l.write.Mutex.Hold(ctx); err == nil {
		return ctx, nil // once more
	}
	return nil, fmt.Errorf("redislock: acquisition of the write half of %q by who holds the read half: %w", l.write.Name(), locks.ErrUpgrade)
}

// ReadLocker returns the half that readers share. It is a [*Mutex].
func (l *RWMutex) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the half of the writer. It is a [*Mutex].
func (l *RWMutex) WriteLocker() locks.TryLocker { return l.write }

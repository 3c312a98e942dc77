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

// The state of a read-write lock, Redisson's RReadWriteLock: a hash with the mode, read or write,
// and a field for each holder: a reader, or the writer with :write behind its name. For each hold
// of a reader there is a key that expires with it. One channel tells of both halves: 0 when the
// last reader has left, 1 when the writer has.

const rwChannel = "redisson_rwlock"

func newWrite(c *core) *single {
	return &single{
		c:       c,
		acquire: writeAcquire,
		lookup:  hashLookup,
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

// writer is the key in a context of the name of the acquisition by which the asker holds the
// write half.
type writer struct{}

func (s readers) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	args := []any{head - 1: nil, name, readHold(name, owner), millis(d), owner}
	if w, ok := ctx.Value(writer{}).(string); ok {
		args = append(args, w+":write")
	}
	return granted(s.c.p.Eval(ctx, readAcquire, 2, args))
}

func (s readers) Lookup(ctx context.Context, name, owner string) (lease.Reply, error) {
	r, err := s.c.p.Eval(ctx, readLookup, 1, []any{head - 1: nil, name, owner})
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
	r, err := s.c.p.Eval(ctx, readRelease, 4, m.publish(args))
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
// It has no order: readers that come and go can keep a writer waiting. The writer may read as
// well, and so become a reader: it takes the read half, and then unlocks the write half, so that
// nobody else has written in between; other readers are told then. A reader that asks to write
// gets [locks.ErrUpgrade], instead of waiting for itself.
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

// asWriter lets the owner of ctx read that holds the write half: the server is told as whom. From
// then on the write half is given back to the server when it is unlocked, not to the next one who
// waits here: that one would write while this owner reads. That is decided before the server is
// asked, so that an unlock at the same time comes to the same: the server sees one before the
// other.
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

package redislock

import (
	"context"
	"errors"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The state of a read-write lock, Redisson's RReadWriteLock, is a hash. Its field mode is read or
// write. Each holder has a field: a reader its name, the writer its name with the suffix :write.
// Each hold of a reader has a key, which expires with it. Both halves have one channel. The last
// reader publishes 0 on it, and the writer 1. Both halves also have one list of our waiters, see
// waiting.go. A release wakes those in front that can enter together: one writer, or the readers up
// to the next writer.

const (
	rwChannel = "redisson_rwlock"
	rwList    = "locks_waiting_rw"
)

// writerSuffix is what the writer's name in the hash ends with.
const writerSuffix = ":write"

func newWrite(c *core) *single {
	return &single{
		c:       c,
		acquire: writeAcquire,
		enqueue: writeAcquire,
		lookup:  hashLookup,
		renew:   hashRenew,
		release: writeRelease,
		leave:   rwLeave,
		inspect: rwInspect,
		force:   writeForce,
		channel: rwChannel,
		list:    rwList,
		payload: wakeAll,
		suffix:  writerSuffix,
		beside:  holdPrefix,
	}
}

func newRead(c *core) *single {
	return &single{
		c:       c,
		acquire: readAcquire,
		enqueue: readAcquire,
		lookup:  readLookup,
		renew:   readRenew,
		release: readRelease,
		leave:   rwLeave,
		inspect: rwInspect,
		force:   readForce,
		channel: rwChannel,
		list:    rwList,
		payload: wakeOne,
		beside:  holdPrefix,
		hold:    readHold,
	}
}

func readHold(name, acquisition string) string {
	return suffixed(name, acquisition+":rwlock_timeout:1")
}

// holdPrefix returns what precedes the first colon in the keys of all readers' holds.
func holdPrefix(name string) string { return strings.TrimSuffix(suffixed(name, ""), ":") }

// writer is a key of contexts. Its value is the name of the acquisition by which the caller holds
// the write half.
type writer struct{}

// writerOf returns the name in the hash of the writer that asks to read with ctx, or an empty text.
func writerOf(ctx context.Context) string {
	if w, ok := ctx.Value(writer{}).(string); ok {
		return w + writerSuffix
	}
	return ""
}

// RWMutex is a read-write lock: any number of readers, or one writer, among all processes.
//
// It has no order. A stream of readers can keep a writer waiting.
//
// The writer may acquire the read half too. If it then unlocks the write half, it is a reader, and
// no other writer was in between. Other readers are woken then. A reader that requests the write
// half gets [locks.ErrUpgrade], because it would wait for itself.
//
// The holds of the two halves are renewed, lost, and released separately.
type RWMutex struct{ read, write *Mutex }

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// RWMutex returns the read-write lock called name, Redisson's RReadWriteLock.
func (c *Client) RWMutex(name string, opts ...lease.MutexOption) *RWMutex {
	l := &RWMutex{
		read:  c.lock(reading, name, append([]lease.MutexOption{lease.Shared()}, opts...)),
		write: c.lock(writing, name, opts),
	}
	l.read.prepare, l.write.prepare = l.asWriter, l.noReader
	l.read.other, l.write.other = l.write.Mutex, l.read.Mutex
	return l
}

// asWriter lets the holder of the write half read. The request names the writer's acquisition.
//
// From then on the unlock of the write half is a release at the server. A hand-off to a local
// waiter would let that waiter write while this owner reads. Pin decides this before the request
// is sent. So a concurrent unlock has the same outcome: the server receives one before the other.
func (l *RWMutex) asWriter(ctx context.Context) (context.Context, error) {
	acquisition, err := l.write.Mutex.Pin(ctx)
	switch {
	case err == nil:
		return context.WithValue(ctx, writer{}, acquisition), nil
	case errors.Is(err, locks.ErrNotHeld):
		return ctx, nil
	}
	return nil, errors.Unwrap(err) // the cause alone, because the caller says what was attempted
}

// noReader refuses an owner that holds the read half and not the write half.
func (l *RWMutex) noReader(ctx context.Context) (context.Context, error) {
	if _, err := l.read.Mutex.Hold(ctx); err != nil {
		return ctx, nil
	}
	if _, err := l.write.Mutex.Hold(ctx); err == nil {
		return ctx, nil // re-entry
	}
	return nil, locks.ErrUpgrade
}

// ReadLocker returns the half of the readers. It is a [*Mutex], see [RWMutex.ReadMutex].
func (l *RWMutex) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the half of the writer. It is a [*Mutex] too.
func (l *RWMutex) WriteLocker() locks.TryLocker { return l.write }

// ReadMutex is [RWMutex.ReadLocker] with its own type, which has Hold and Inspect.
func (l *RWMutex) ReadMutex() *Mutex { return l.read }

// WriteMutex is [RWMutex.WriteLocker] with its own type.
func (l *RWMutex) WriteMutex() *Mutex { return l.write }

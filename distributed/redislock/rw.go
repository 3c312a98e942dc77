package redislock

import (
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

// writerOf returns the name in the hash of the writer that asks to read by req, or an empty text.
func writerOf(req lease.Request) string {
	if req.Writer == "" {
		return ""
	}
	return req.Writer + writerSuffix
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
		read:  c.lock(reading, name, append([]lease.MutexOption{lease.WithShared()}, opts...)),
		write: c.lock(writing, name, opts),
	}
	lease.Halves(l.read.m, l.write.m)
	return l
}

// ReadLocker returns the half of the readers. It is a [*Mutex], see [RWMutex.ReadMutex].
func (l *RWMutex) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the half of the writer. It is a [*Mutex] too.
func (l *RWMutex) WriteLocker() locks.TryLocker { return l.write }

// ReadMutex is [RWMutex.ReadLocker] with its own type, which has Hold and Inspect.
func (l *RWMutex) ReadMutex() *Mutex { return l.read }

// WriteMutex is [RWMutex.WriteLocker] with its own type.
func (l *RWMutex) WriteMutex() *Mutex { return l.write }

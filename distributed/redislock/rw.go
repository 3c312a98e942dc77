package redislock

import (
	"strings"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The state of a read-write lock, Redisson's RReadWriteLock, is a hash. Its field mode is read or
// write. Each holder has a field: a reader its name, the writer its name with the suffix :write.
// Each hold of a reader has a key, which expires with it. Both halves have one channel. The last
// reader publishes 0 on the channel, and the writer 1. Both halves also have one list of our
// waiters, see waiting.go. A release wakes the waiters in front that can enter together: one
// writer, or the readers up to the next writer.

const (
	rwChannel = "redisson_rwlock"
	rwList    = "locks_waiting_rw"
)

// writerSuffix ends the writer's name in the hash.
const writerSuffix = ":write"

func newWrite(c *core) *single {
	return &single{
		c:             c,
		acquire:       writeAcquire,
		enqueue:       writeAcquire,
		lookup:        hashLookup,
		renew:         writeRenew,
		renewKey:      func(name, _ string) string { return holdPrefix(name) },
		release:       writeRelease,
		leave:         rwLeave,
		inspect:       rwInspect,
		force:         writeForce,
		channel:       rwChannel,
		list:          rwList,
		forcedMessage: wakeAll,
		entrySuffix:   writerSuffix,
		readersKey:    holdPrefix,
	}
}

func newRead(c *core) *single {
	return &single{
		c:             c,
		acquire:       readAcquire,
		enqueue:       readAcquire,
		lookup:        readLookup,
		renew:         readRenew,
		release:       readRelease,
		leave:         rwLeave,
		inspect:       rwInspect,
		force:         readForce,
		channel:       rwChannel,
		list:          rwList,
		forcedMessage: wakeOne,
		readersKey:    holdPrefix,
		readKey:       readHold,
		renewKey:      readHold,
	}
}

func readHold(name, acquisition string) string {
	return addSuffix(name, acquisition+":rwlock_timeout:1")
}

// holdPrefix returns the text before the first colon in the keys of all readers' holds.
func holdPrefix(name string) string { return strings.TrimSuffix(addSuffix(name, ""), ":") }

// writerOf returns the name in the hash of the writer that asks to read by req, or an empty text.
func writerOf(req driver.Request) string {
	if req.Writer == "" {
		return ""
	}
	return req.Writer + writerSuffix
}

// RWMutex returns the read-write lock called name, Redisson's RReadWriteLock. Its waiters are
// served in no order: a stream of readers can keep a writer waiting. When a writer that reads too
// unlocks the write half, other readers are woken.
func (c *Client) RWMutex(name string, opts ...lease.MutexOption) *lease.RWMutex {
	return lease.NewRWMutex(
		c.lock(reading, name, append([]lease.MutexOption{lease.WithShared()}, opts...)),
		c.lock(writing, name, opts),
	)
}

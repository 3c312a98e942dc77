package fair

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// BargingMutex is the non-fair twin of [Mutex], with the same methods: a free lock goes to the
// first goroutine that asks, ahead of the waiters. [locks.NonFair] says how long a waiter can be
// overtaken.
//
// The zero BargingMutex is free. It must not be copied after first use. Like a [sync.Mutex] it
// belongs to no goroutine. Use it in place of a sync.Mutex for a context, a time limit, a
// condition with a queue, or a look at the queue.
//
// In the terms of the Go memory model, an unlock synchronizes before the next lock. Uncontended
// it costs what a sync.Mutex does, and it allocates nothing.
type BargingMutex struct {
	queued
}

var _ locks.TryLocker = (*BargingMutex)(nil)

// Lock acquires the lock, and waits for it if it is not free.
func (m *BargingMutex) Lock() {
	if sched.On { // without this line the method is too long to be inlined
		sched.Begin("Lock", m)
	}
	if !m.s.Word.CompareAndSwap(0, syncq.Taken) {
		m.lock()
	}
}

//go:noinline // so that Lock is inlined
func (m *BargingMutex) lock() {
	if m.s.Word.CompareAndSwap(syncq.Awake, syncq.Awake|syncq.Taken) {
		m.s.Barged()
		return
	}
	m.s.Acquire(syncq.Anonymous(0), nil)
}

// Unlock releases the lock. It panics with [locks.ErrNotHeld] if the lock is free.
func (m *BargingMutex) Unlock() {
	if sched.On { // without this line the method is too long to be inlined
		sched.Begin("Unlock", m)
	}
	if !m.s.Word.CompareAndSwap(syncq.Taken, 0) {
		m.unlock()
	}
}

//go:noinline // so that Unlock is inlined
func (m *BargingMutex) unlock() {
	if !m.s.Word.CompareAndSwap(syncq.Awake|syncq.Taken, syncq.Awake) && !m.s.Unlock() {
		panic(free("Unlock", "fair.BargingMutex"))
	}
}

// TryLockFor acquires the lock, waits for it for at most d, and reports whether it did. With d
// <= 0 it does not wait. Java's tryLock(time, unit).
func (m *BargingMutex) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", m)(&ok)
	}
	return m.s.Acquire(syncq.Anonymous(goid.Get()), park.After(d)) == syncq.Acquired
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. If ctx ends, the waiter is out of the queue when the call returns. Java's
// lockInterruptibly().
func (m *BargingMutex) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", m)(&err)
	}
	return m.lockContext(ctx, locks.NonFair)
}

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *BargingMutex) UnlockContext(context.Context) error {
	sched.Begin("UnlockContext", m)
	if !m.release() {
		return free("UnlockContext", "fair.BargingMutex")
	}
	return nil
}

// NewCond returns a new condition of the lock. Java's newCondition().
func (m *BargingMutex) NewCond() *condition.Cond {
	return condition.New(&attach.Lock{Locker: m, Q: syncq.NewCond(&m.s, syncq.NonFair)})
}

// String describes the lock and its state.
func (m *BargingMutex) String() string { return m.describe("fair.BargingMutex", m) }

package fair

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// Mutex is a mutual exclusion lock that admits in strict order of arrival, by direct hand-off: a
// goroutine waits only for the goroutines that came before it.
//
// The zero Mutex is free. It must not be copied after first use. Like a [sync.Mutex] it belongs
// to no goroutine: one goroutine may lock it and another may unlock it, and locking it twice hangs.
// Use reentrant.New(locks.FIFO) for a lock with an owner.
//
// In the terms of the Go memory model, an unlock synchronizes before the next lock. Uncontended
// it costs what a sync.Mutex does. Contended, each acquisition costs a change of goroutines.
// Only waits with a context or a time limit allocate.
type Mutex struct {
	queued
}

var _ locks.TryLocker = (*Mutex)(nil)

// Lock acquires the lock, and waits for it behind all earlier waiters.
func (m *Mutex) Lock() {
	if sched.On { // without this line the method is too long to be inlined
		sched.Begin("Lock", m)
	}
	if !m.s.Word.CompareAndSwap(0, syncq.Taken) {
		m.lock()
	}
}

//go:noinline // so that Lock is inlined
func (m *Mutex) lock() { m.s.Acquire(inTurn(0), nil) }

// Unlock releases the lock, to the longest waiter if there is one. It panics with
// [locks.ErrNotHeld] if the lock is free.
func (m *Mutex) Unlock() {
	if sched.On { // without this line the method is too long to be inlined
		sched.Begin("Unlock", m)
	}
	if !m.s.Word.CompareAndSwap(syncq.Taken, 0) {
		m.unlock()
	}
}

//go:noinline // so that Unlock is inlined
func (m *Mutex) unlock() {
	if !m.s.Unlock() {
		panic(free("Unlock", "fair.Mutex"))
	}
}

// TryLockFor acquires the lock, waits for it in the queue for at most d, and reports whether it
// did. With d <= 0 it does not wait, and succeeds only if the lock is free and no goroutine
// waits. Java's tryLock(time, unit).
func (m *Mutex) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", m)(&ok)
	}
	return m.s.Acquire(inTurn(goid.Get()), park.After(d)) == syncq.Acquired
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. If ctx ends, the waiter is out of the queue when the call returns. Java's
// lockInterruptibly().
func (m *Mutex) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", m)(&err)
	}
	return m.lockContext(ctx, locks.FIFO)
}

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *Mutex) UnlockContext(context.Context) error {
	sched.Begin("UnlockContext", m)
	if !m.release() {
		return free("UnlockContext", "fair.Mutex")
	}
	return nil
}

// NewCond returns a new condition of the lock. Java's newCondition().
func (m *Mutex) NewCond() *condition.Cond {
	return condition.New(&attach.Lock{Locker: m, Q: syncq.NewCond(&m.s, syncq.FIFO)})
}

// String describes the lock and its state.
func (m *Mutex) String() string { return m.describe("fair.Mutex", m) }

func (q *queued) describe(name string, p any) string {
	state := "unlocked"
	if q.IsLocked() {
		state = "locked"
	}
	return fmt.Sprintf("%s(%p)[%s, %d queued]", name, p, state, q.QueueLength())
}

package condition

import (
	"sync"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/syncq"
)

// foreign is a lock of another module, or a lock of this module with a queue of another engine. Its
// conditions cannot use the lock's queue. They have a synchronizer of their own, which is free
// except while waiters come back. Each waiter holds the synchronizer while it acquires the lock,
// and only then admits the next waiter. Therefore a broadcast does not send all waiters to the lock
// at once.
//
// Such a lock may panic in its Lock, or in its Unlock if the caller does not hold it. The other
// waiters must continue nevertheless.
type foreign struct {
	l    sync.Locker
	asks interface{ IsLocked() bool } // nil if l cannot tell
}

// newForeign returns a condition of l.
func newForeign(l sync.Locker) *Cond {
	f := &foreign{l: l}
	f.asks, _ = l.(interface{ IsLocked() bool })
	return &Cond{of: l, q: syncq.NewCond(new(syncq.Sync), syncq.FIFO), outer: f}
}

func (f *foreign) isHeld() bool { return f.asks == nil || f.asks.IsLocked() }

// wait releases the lock, waits for a signal of q, and acquires the lock again.
func (f *foreign) wait(q *syncq.Cond, l *park.Limit, o int64) (signalled bool) {
	w := q.NewWaiter(syncq.Anonymous(o), l)
	w.Enqueue(false)
	f.release(w)
	signalled = w.Await()
	defer q.Sync().Unlock()
	f.l.Lock()
	return signalled
}

// release releases the lock for a waiter that is in the queue already, so that no signal is
// missed. If the lock's Unlock panics, the goroutine does not wait: it has left the queue when
// the panic continues.
func (f *foreign) release(w syncq.Waiter) {
	released := false
	defer func() {
		if !released {
			w.Abandon()
		}
	}()
	f.l.Unlock()
	released = true
}

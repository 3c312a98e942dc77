package condition

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/syncq"
)

// foreign is a lock that is not one of this module. In place of the lock's own queue its conditions
// have a gate, a synchronizer that is free but while waiters come back. Each waiter takes the lock
// behind the gate, and only then lets the next one through, so that a broadcast does not send them
// all at the lock together.
//
// Such a lock may panic in its Unlock, as one does that the caller turns out not to hold, or in its
// Lock. The other waiters have to get on all the same.
type foreign struct {
	l    sync.Locker
	asks interface{ IsLocked() bool } // nil if l cannot tell
}

// newForeign returns a condition of l.
func newForeign(l sync.Locker) *Cond {
	f := &foreign{l: l}
	f.asks, _ = l.(interface{ IsLocked() bool })
	return &Cond{q: syncq.NewCond(new(syncq.Sync), syncq.FIFO), outer: f}
}

func (f *foreign) isHeld() bool { return f.asks == nil || f.asks.IsLocked() }

// wait releases the lock, waits for a signal of q, and takes the lock again. The limit is ctx if
// that is not nil, or d if that is not negative.
func (f *foreign) wait(q *syncq.Cond, ctx context.Context, d time.Duration, o int64) (signalled bool) {
	w := q.Enter(ctx, d, o)
	f.release(w)
	signalled = w.Await()
	defer q.Sync().Unlock(syncq.FIFO)
	f.l.Lock()
	return signalled
}

// release releases the lock for a waiter that is in the queue already, so that no signal is missed.
// If that panics there is no wait: the waiter has left the queue when the panic goes on.
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

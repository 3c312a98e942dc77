package fair

import (
	"context"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/unheld"
)

// queued has the part that both mutexes of this package share: everything that does not depend on
// the policy.
type queued struct {
	s syncq.Sync
}

// TryLock acquires the lock if it is free, ahead of the waiters, and reports whether it did.
// Java's tryLock().
func (q *queued) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", q)(&ok)
	}
	return q.s.TryLock(syncq.Anonymous(0))
}

// TryLockContext is TryLock for call sites that also work with distributed locks. A ctx that has
// ended already is an error even if the lock is free; otherwise ctx is ignored.
func (q *queued) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", q)(&ok)
	}
	if err := ctxerr.Check("fair: TryLockContext", ctx); err != nil {
		return false, err
	}
	return q.TryLock(), nil
}

// IsLocked reports whether the lock is held.
func (q *queued) IsLocked() bool { return q.s.Held() }

// HasQueued reports whether a goroutine waits for the lock.
func (q *queued) HasQueued() bool { return q.s.HasQueued() }

// QueueLength returns the number of goroutines that wait for the lock.
func (q *queued) QueueLength() int { return q.s.Len() }

// IsQueued reports whether o waits for the lock.
func (q *queued) IsQueued(o locks.Owner) bool { return q.s.Waits(int64(o)) }

// Queued returns the owners that wait for the lock, longest wait first.
func (q *queued) Queued() []locks.Owner { return outcome.Owners(q.s.Waiters()) }

// Inspect describes the lock, whose holder is not known. See [locks.Inspector].
func (q *queued) Inspect(ctx context.Context) (locks.Info, error) {
	return info.State{Held: q.IsLocked(), Waiters: q.Queued()}.Answer("fair: Inspect", ctx)
}

func (q *queued) lockContext(ctx context.Context, policy locks.Policy) error {
	const op = "fair: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	// A swap that fails would take longer than the look at the word.
	if q.s.Word.Load() == 0 && q.s.Word.CompareAndSwap(0, syncq.Taken) {
		return nil
	}
	p := syncq.Anonymous(int64(locks.CurrentOwner(ctx)))
	if policy == locks.FIFO {
		p = p.FIFO()
	}
	done := ctx.Done()
	if done == nil || sched.On {
		return outcome.Error(op, ctx, q.s.Acquire(p, park.Until(ctx)))
	}
	// Acquire, without its frames, through which a goroutine that wakes would return.
	w, waits := syncq.Begin(&q.s, p)
	for waits {
		select {
		case <-w.Permits():
			waits = w.Woken()
		case <-done:
			w.Leave()
			waits = false
		}
	}
	if out := w.Finish(); out != syncq.Acquired {
		return outcome.Error(op, ctx, out)
	}
	return nil
}

// release is Unlock, and reports whether the lock was held.
func (q *queued) release() bool {
	return q.s.Word.Load() == syncq.Taken && q.s.Word.CompareAndSwap(syncq.Taken, 0) || q.s.Unlock()
}

// free returns the error of op on a free lock of this type.
func free(op, name string) error { return ctxerr.Wrap("fair: "+op, unheld.Free("the "+name)) }

// inTurn returns the party of a lock whose zero value is FIFO.
func inTurn(who int64) syncq.Party { return syncq.Anonymous(who).FIFO() }

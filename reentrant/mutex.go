package reentrant

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/shares"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/unheld"
)

// MaxHolds is the greatest number of holds that an owner can have of one [Mutex]. One more hold
// is refused with [locks.ErrTooManyHolds].
const MaxHolds = syncq.MaxHolds

// Mutex is a mutual exclusion lock that belongs to a goroutine, or to an explicit [locks.Owner].
// The owner can re-enter it. The lock is free after as many unlocks as locks. Java's
// ReentrantLock.
//
// The zero Mutex is free and non-fair; [New] makes a fair one. A Mutex must not be
// copied after first use.
//
// The plain methods act for the calling goroutine. On misuse they panic with a value of package
// locks, and leave the lock unchanged. The Context family acts for the owner that the context
// carries, or else for the calling goroutine, and returns the same values as errors.
//
// Goroutines that share an explicit owner share its holds. While the owner holds the lock, each
// of them can re-enter it. The lock is free after as many unlocks, whichever goroutines make
// them. A condition wait by one of them is refused with condition.ErrSharedHolds if it would
// release a hold that another goroutine acquired. When the owner gets the lock, all waiters of
// this owner are admitted.
//
// In the terms of the Go memory model, the last unlock of an owner synchronizes before the first
// lock of the next owner. Nothing is ordered between goroutines that share an explicit owner.
//
// Uncontended, lock and unlock are one compare-and-swap each, and a re-entry is none. For an
// explicit owner each is a mutex and a map access instead. A contended Lock allocates nothing in
// the steady state.
type Mutex struct {
	s syncq.Reentrant
}

var _ locks.TryLocker = (*Mutex)(nil)

// kind describes a Mutex to deadlock detection.
var kind = syncq.Kind{Name: "reentrant.Mutex", Refusable: true}

// New returns a Mutex that admits by p.
func New(p locks.Policy) *Mutex { return &Mutex{syncq.NewReentrant(p == locks.FIFO)} }

func init() {
	attach.Reentrant = func(m locks.TryLocker) *syncq.Reentrant { return &m.(*Mutex).s }
}

// recorded returns acquired, which reports whether o has acquired the lock. If acquired is true,
// and package deadlock records acquisitions, recorded records this acquisition.
func (m *Mutex) recorded(o int64, acquired bool) bool {
	if acquired && goid.Recording() {
		m.s.Acquired(party(o))
	}
	return acquired
}

// party returns o as a party that may wait.
func party(o int64) syncq.Party { return syncq.Owned(o).Of(&kind) }

// Lock acquires the lock, and waits for it if need be. The owner re-enters it. No context ends
// the wait. While package deadlock refuses waits, Lock panics with [locks.ErrDeadlock] instead
// of a wait that would close a cycle. Java's lock().
func (m *Mutex) Lock() {
	sched.Begin("Lock", m)
	if me := goid.Fast(); me != 0 {
		// The swaps are from constants, so a processor can begin them before it has loaded w.
		if w := m.s.Word.Load(); w == 0 {
			if m.s.Word.CompareAndSwap(0, syncq.Value(me)) {
				return
			}
		} else if w == syncq.Awake {
			if m.s.Word.CompareAndSwap(syncq.Awake, syncq.Awake|syncq.Value(me)) {
				m.s.Barged()
				return
			}
		} else if syncq.Names(w, me) && m.s.Holds < MaxHolds-1 {
			m.s.Holds++
			return
		}
	}
	m.lock()
}

func (m *Mutex) lock() {
	me := goid.Get()
	if !m.reentered(me) && !m.recorded(me, m.s.Acquire(party(me), nil) == syncq.Acquired) {
		panic(locks.ErrDeadlock)
	}
}

// TryLock acquires the lock if it is free, ahead of the waiters, or re-enters it, and reports
// whether it did. Java's tryLock().
func (m *Mutex) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", m)(&ok)
	}
	if me := goid.Fast(); me != 0 && m.s.LockOrReenter(me) {
		return true
	}
	me := goid.Get()
	if m.reentered(me) {
		return true
	}
	return m.recorded(me, m.s.TryLock(syncq.Owned(me)))
}

// TryLockFor is Lock with a wait of at most d, and reports whether it acquired the lock. It
// queues: with d <= 0 it is the try that respects the queue, and under [locks.FIFO] succeeds only
// if no goroutine waits. It returns false at once if the wait is refused because it would close
// a cycle. Java's tryLock(time, unit).
func (m *Mutex) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", m)(&ok)
	}
	me := goid.Get()
	if m.reentered(me) {
		return true
	}
	return m.recorded(me, m.s.Acquire(party(me), park.After(d)) == syncq.Acquired)
}

// Unlock releases one hold. The last release frees the lock. Unlock panics with [locks.ErrNotHeld]
// if the goroutine does not hold the lock. Java's unlock().
func (m *Mutex) Unlock() {
	sched.Begin("Unlock", m)
	if me := goid.Fast(); me != 0 {
		if w := m.s.Word.Load(); syncq.Names(w, me) {
			if m.s.Holds > 0 {
				m.s.Holds--
				return
			}
			if m.s.TryFree(w, syncq.Value(me)) {
				return
			}
		}
	}
	m.unlock()
}

func (m *Mutex) unlock() {
	if me := goid.Get(); !m.leave(me) {
		panic(m.notHeld("Unlock", locks.Owner(me)))
	}
}

func (m *Mutex) leave(o int64) bool { return m.s.Release(o) }

// notHeld returns the error of op by o, which does not hold the lock.
func (m *Mutex) notHeld(op string, o locks.Owner) error {
	err := unheld.Free("the reentrant.Mutex")
	if holder := m.Owner(); holder != 0 {
		err = unheld.By(o, "the reentrant.Mutex is held by", "", holder)
	}
	return ctxerr.Wrap("reentrant: "+op, err)
}

// reentered counts one more hold of the goroutine if it has the lock, and reports whether it has.
func (m *Mutex) reentered(me int64) bool {
	switch m.s.Reenter(me) {
	case syncq.Acquired:
		return true
	case syncq.TooMany:
		panic(locks.ErrTooManyHolds)
	}
	return false
}

// LockContext acquires the lock for ctx's owner, and waits for it until ctx ends. The owner
// re-enters it. A ctx that has ended already is an error even if the lock is free, and even on
// re-entry. If ctx ends, the waiter is out of the queue when the call returns. While package
// deadlock refuses waits, a wait that would close a cycle is an error that matches
// [locks.ErrDeadlock]. Java's lockInterruptibly().
func (m *Mutex) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", m)(&err)
	}
	const op = "reentrant: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	o := int64(locks.CurrentOwner(ctx))
	if o > 0 && !goid.Recording() && m.s.LockOrReenter(o) {
		return nil
	}
	return m.lockContext(op, ctx, o)
}

func (m *Mutex) lockContext(op string, ctx context.Context, o int64) error {
	var out syncq.Outcome
	if o < 0 {
		out = shares.Of(&m.s.Sync).Lock(ctx, party(o), false)
	} else {
		if out = m.s.Reenter(o); out != syncq.NotHeld {
			return outcome.Error(op, ctx, out)
		}
		done := ctx.Done()
		if done == nil || sched.On {
			out = m.s.Acquire(party(o), park.Until(ctx))
		} else {
			// These are the steps of Acquire without its frames, since a goroutine that wakes
			// pays for each frame through which it returns.
			w, waits := syncq.Begin(&m.s.Sync, party(o))
			for waits {
				select {
				case <-w.Permits():
					waits = w.Woken()
				case <-done:
					w.Leave()
					waits = false
				}
			}
			out = w.Finish()
		}
	}
	m.recorded(o, out == syncq.Acquired)
	return outcome.Error(op, ctx, out)
}

// TryLockContext is TryLock for ctx's owner. A ctx that has ended already is an error; otherwise
// ctx limits nothing here.
func (m *Mutex) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", m)(&ok)
	}
	const op = "reentrant: TryLockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return false, err
	}
	o := int64(locks.CurrentOwner(ctx))
	if o < 0 {
		out := shares.Of(&m.s.Sync).TryLock(o, false)
		m.recorded(o, out == syncq.Acquired)
		return outcome.Try(op, out)
	}
	if out := m.s.Reenter(o); out != syncq.NotHeld {
		return outcome.Try(op, out)
	}
	return m.recorded(o, m.s.TryLock(syncq.Owned(o))), nil
}

// UnlockContext is Unlock for ctx's owner, but returns an error that matches [locks.ErrNotHeld]
// where Unlock panics. It ignores the end of ctx.
func (m *Mutex) UnlockContext(ctx context.Context) error {
	sched.Begin("UnlockContext", m)
	o := locks.CurrentOwner(ctx)
	if o < 0 && shares.Of(&m.s.Sync).Unlock(int64(o)) == syncq.Acquired || o > 0 && m.leave(int64(o)) {
		return nil
	}
	return m.notHeld("UnlockContext", o)
}

// NewCond returns a new condition of the lock. Java's newCondition().
func (m *Mutex) NewCond() *condition.Cond {
	return condition.New(&attach.Lock{Locker: m, Q: m.s.NewCond(), Kind: &kind})
}

// IsLocked reports whether the lock is held.
func (m *Mutex) IsLocked() bool { return m.s.Held() }

// IsFair reports whether the lock admits by [locks.FIFO].
func (m *Mutex) IsFair() bool { return m.s.Policy() == syncq.FIFO }

// IsHeld reports whether the calling goroutine holds the lock. Java's
// isHeldByCurrentThread().
func (m *Mutex) IsHeld() bool { return m.s.HeldBy(goid.Get()) }

// HoldCount returns the number of holds of the calling goroutine. Java's getHoldCount().
func (m *Mutex) HoldCount() int {
	return m.s.HoldCount(goid.Get())
}

// AssertHeld panics with [locks.ErrNotHeld] if the calling goroutine does not hold the lock.
func (m *Mutex) AssertHeld() {
	if !m.IsHeld() {
		panic(m.notHeld("AssertHeld", locks.Owner(goid.Get())))
	}
}

// IsHeldContext reports whether ctx's owner holds the lock. It ignores the end of ctx.
func (m *Mutex) IsHeldContext(ctx context.Context) bool { return m.HoldCountContext(ctx) > 0 }

// HoldCountContext returns the number of holds of ctx's owner. The holds of all goroutines that
// share an explicit owner count. It ignores the end of ctx.
func (m *Mutex) HoldCountContext(ctx context.Context) int {
	return shares.WriteHolds(&m.s, int64(locks.CurrentOwner(ctx)))
}

// Owner returns the holder, or 0.
func (m *Mutex) Owner() locks.Owner { return locks.Owner(m.s.Owner()) }

// HasQueued reports whether a goroutine waits for the lock. Java's hasQueuedThreads().
func (m *Mutex) HasQueued() bool { return m.s.HasQueued() }

// QueueLength returns the number of goroutines that wait for the lock. Java's getQueueLength().
func (m *Mutex) QueueLength() int { return m.s.Len() }

// IsQueued reports whether o waits for the lock. Java's hasQueuedThread(thread).
func (m *Mutex) IsQueued(o locks.Owner) bool { return m.s.Waits(int64(o)) }

// Queued returns the owners that wait for the lock, longest wait first. Java's
// getQueuedThreads().
func (m *Mutex) Queued() []locks.Owner { return outcome.Owners(m.s.Waiters()) }

// HasWaiters reports whether a goroutine waits for a signal of c. Like [Mutex.WaitQueueLength]
// it panics with [locks.ErrForeign] if c is nil or of another lock, and with [locks.ErrNotHeld]
// if the calling goroutine does not hold the lock.
func (m *Mutex) HasWaiters(c *condition.Cond) bool { return m.WaitQueueLength(c) > 0 }

// WaitQueueLength returns the number of goroutines that wait for a signal of c.
func (m *Mutex) WaitQueueLength(c *condition.Cond) int {
	if c == nil || c.Locker() != m {
		panic(locks.ErrForeign)
	}
	return c.WaitQueueLength()
}

// Inspect describes the lock, its owner, and its waiters. See [locks.Inspector].
func (m *Mutex) Inspect(ctx context.Context) (locks.Info, error) {
	o := m.Owner()
	return info.State{Held: o != 0, Holders: []locks.Owner{o}, Waiters: m.Queued()}.Answer("reentrant: Inspect", ctx)
}

// String describes the lock and its state.
func (m *Mutex) String() string {
	state := "unlocked"
	if o := m.Owner(); o != 0 {
		state = "locked by " + o.String()
	}
	return fmt.Sprintf("reentrant.Mutex(%p)[%s, %d queued]", m, state, m.QueueLength())
}

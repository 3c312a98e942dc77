package spin

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// Mutex is a lock whose waiters spin first and park then. The spin is test and test-and-set with
// exponential backoff. It lasts as long as a [Backoff] has pause instructions, about the time of
// one hand-off. Then the goroutine parks in a queue. While other goroutines are parked there, a new
// goroutine hardly spins.
//
// It is not fair: a free lock goes to the first goroutine that tries. The time for which a
// waiter can be overtaken is limited as in [fair.BargingMutex]: by 16 lost races, or by
// one millisecond and one more for each 128 waiters.
//
// The zero Mutex is free. It must not be copied after first use. Like a [sync.Mutex] it belongs
// to no goroutine: one goroutine may lock it and another unlock it, and locking it twice hangs.
//
// In the terms of the Go memory model, an unlock synchronizes before the next lock. Uncontended it
// costs as much as a sync.Mutex, and allocates nothing. Java lacks such a lock; its monitors spin
// like this.
//
// The algorithm is from T. E. Anderson, "The Performance of Spin Lock Alternatives for
// Shared-Memory Multiprocessors", IEEE TPDS 1(1), 1990. To block after a spin of about the cost
// of blocking takes at most twice the time of the best choice: A. Karlin et al., "Empirical
// Studies of Competitive Spinning for a Shared-Memory Multiprocessor", SOSP 1991.
//
// [fair.BargingMutex]: https://pkg.go.dev/github.com/jucgo/locks/fair#BargingMutex
type Mutex struct {
	s syncq.Sync
}

var _ locks.TryLocker = (*Mutex)(nil)

// Lock acquires the lock, and waits for it if it is not free.
func (m *Mutex) Lock() {
	sched.Begin("Lock", m)
	if !m.s.Word.CompareAndSwap(0, syncq.Taken) {
		m.lock()
	}
}

func (m *Mutex) lock() {
	if !m.spin() {
		m.s.Acquire(syncq.Anonymous(0), nil)
	}
}

// spin tries to acquire the lock until its budget is used up, or other goroutines are parked for
// the lock. While goroutines are parked, a spinning goroutine only takes the cache line away from
// the holder. For the same reason a try reads the word first, and swaps only if the swap can
// succeed.
func (m *Mutex) spin() bool {
	if sched.On && sched.Explored() {
		return false
	}
	for b := (Backoff{}); !b.Spun() && !m.s.HasQueued(); {
		b.Pause()
		if m.TryLock() {
			return true
		}
	}
	return false
}

// Unlock releases the lock. It panics with [locks.ErrNotHeld] if the lock is free.
func (m *Mutex) Unlock() {
	sched.Begin("Unlock", m)
	if !m.s.Word.CompareAndSwap(syncq.Taken, 0) {
		m.unlock()
	}
}

//go:noinline // so that Unlock is inlined
func (m *Mutex) unlock() {
	if !m.s.Unlock() {
		panic(free("Unlock", "spin.Mutex"))
	}
}

// TryLock acquires the lock if it is free, ahead of all waiters, and reports whether it did. It
// does not spin. Java's tryLock().
func (m *Mutex) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", m)(&ok)
	}
	return m.s.TryLock(syncq.Anonymous(0))
}

// TryLockFor acquires the lock, waits for it for at most d, and reports whether it did. With d
// <= 0 it neither waits nor spins. Java's tryLock(time, unit).
func (m *Mutex) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", m)(&ok)
	}
	if m.TryLock() {
		return true
	}
	if d <= 0 || m.spin() {
		return d > 0
	}
	return m.s.Acquire(syncq.Anonymous(goid.Get()), park.After(d)) == syncq.Acquired
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. If ctx ends, the waiter is out of the queue when the call returns. Java's
// lockInterruptibly().
func (m *Mutex) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", m)(&err)
	}
	const op = "spin: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if m.TryLock() || m.spin() {
		return nil
	}
	p := syncq.Anonymous(int64(locks.CurrentOwner(ctx)))
	return outcome.Error(op, ctx, m.s.Acquire(p, park.Until(ctx)))
}

// TryLockContext is TryLock for call sites that also work with distributed locks. It ignores a
// ctx that ends later, but a ctx that has ended already is an error even if the lock is free.
func (m *Mutex) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", m)(&ok)
	}
	return tryLockContext(ctx, m)
}

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *Mutex) UnlockContext(context.Context) error {
	sched.Begin("UnlockContext", m)
	return unlockError(m.s.Unlock(), "spin.Mutex")
}

// NewCond returns a new condition of the lock. Java's newCondition().
func (m *Mutex) NewCond() *condition.Cond {
	return condition.New(&attach.Lock{Locker: m, Q: syncq.NewCond(&m.s, syncq.NonFair)})
}

// IsLocked reports whether the lock is held.
func (m *Mutex) IsLocked() bool { return m.s.Held() }

// HasQueued reports whether a goroutine is parked in the queue. A spinning goroutine is not in the
// queue yet.
func (m *Mutex) HasQueued() bool { return m.s.HasQueued() }

// QueueLength returns the number of goroutines in the queue. A spinning goroutine is not in the
// queue yet.
func (m *Mutex) QueueLength() int { return m.s.Len() }

// IsQueued reports whether a goroutine of owner o is in the queue.
func (m *Mutex) IsQueued(o locks.Owner) bool { return m.s.Waits(int64(o)) }

// Queued returns the owners in the queue, longest wait first.
func (m *Mutex) Queued() []locks.Owner { return outcome.Owners(m.s.Waiters()) }

// Inspect describes the lock, whose holder is not known. See [locks.Inspector].
func (m *Mutex) Inspect(ctx context.Context) (locks.Info, error) {
	return inspect(ctx, m)
}

// String describes the lock and its state.
func (m *Mutex) String() string { return describe("spin.Mutex", m, m) }

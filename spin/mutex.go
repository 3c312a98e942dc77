package spin

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/syncq"
)

// Mutex is a lock that spins first and blocks then: test and test-and-set with exponential
// backoff, for as long as a [Backoff] has pause instructions to spend, about the time of one
// hand-over between goroutines. A goroutine that has not got the lock by then sleeps in a queue.
// A newcomer hardly spins when others sleep already.
//
// It is not fair: a free lock goes to the first goroutine that tries. How long a waiter in the
// queue can be passed over is bounded as in [fair.BargingMutex]: by 16 races lost, or a
// millisecond.
//
// The zero Mutex is free. It must not be copied after first use. Like a [sync.Mutex] it belongs
// to no goroutine: one may lock it and another unlock it, and locking it twice hangs.
//
// In the terms of the Go memory model, an unlock synchronizes before the lock that follows it.
// Uncontended it costs what a sync.Mutex does, and it allocates nothing. Java has no such lock of
// its own; its monitors spin like this.
//
// The algorithm is from T. E. Anderson, "The Performance of Spin Lock Alternatives for
// Shared-Memory Multiprocessors", IEEE Transactions on Parallel and Distributed Systems 1(1),
// 1990; that to block after about the cost of blocking is at most twice as bad as to know the
// future, from A. Karlin et al., "Empirical Studies of Competitive Spinning for a Shared-Memory
// Multiprocessor", SOSP 1991.
//
// [fair.BargingMutex]: https://pkg.go.dev/github.com/jucgo/locks/fair#BargingMutex
type Mutex struct {
	s syncq.Sync
}

var _ locks.TryLocker = (*Mutex)(nil)

// Lock takes the lock, and waits for it if it is not free.
func (m *Mutex) Lock() {
	if !m.s.Word.CompareAndSwap(0, syncq.Taken) {
		m.lock()
	}
}

func (m *Mutex) lock() {
	if !m.spin() {
		m.s.Lock(syncq.Anonymous(0), syncq.NonFair)
	}
}

// spin tries to take the lock until the time to spin is used up, or others sleep for it: where so
// many come, one more that spins does no more than take the cache line away from the holder, time
// and again. For the same reason a try looks first, and swaps only if it can succeed.
func (m *Mutex) spin() bool {
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
	if !m.s.Word.CompareAndSwap(syncq.Taken, 0) {
		m.unlock()
	}
}

//go:noinline // so that Unlock is inlined
func (m *Mutex) unlock() {
	if !m.s.Unlock(syncq.NonFair) {
		panic(locks.ErrNotHeld)
	}
}

// TryLock takes the lock if it is free, past all waiters, and reports whether it did. It does not
// spin. Java's tryLock().
func (m *Mutex) TryLock() bool { return m.s.TryLock(syncq.Anonymous(0)) }

// TryLockFor takes the lock, waits for it for at most d, and reports whether it was taken. With d
// <= 0 it does not wait, and does not spin. Java's tryLock(time, unit).
func (m *Mutex) TryLockFor(d time.Duration) bool {
	if m.TryLock() {
		return true
	}
	return d > 0 && (m.spin() || m.s.LockFor(syncq.Anonymous(goid.Get()), syncq.NonFair, d))
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. A waiter whose ctx ends is out of the queue when the call returns. Java's
// lockInterruptibly().
func (m *Mutex) LockContext(ctx context.Context) error {
	const op = "spin: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if m.TryLock() || m.spin() {
		return nil
	}
	p := syncq.Anonymous(int64(locks.CurrentOwner(ctx)))
	return outcome.Error(op, ctx, m.s.LockContext(ctx, p, syncq.NonFair))
}

// TryLockContext is TryLock for call sites that may go distributed. ctx bounds nothing here; but
// one that has ended already is an error, even if the lock is free.
func (m *Mutex) TryLockContext(ctx context.Context) (bool, error) { return tryLockContext(ctx, m) }

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *Mutex) UnlockContext(context.Context) error { return unlocked(m.s.Unlock(syncq.NonFair)) }

// NewCond returns a new condition of the lock. Java's newCondition().
func (m *Mutex) NewCond() *condition.Cond {
	return attach.New(attach.Cond{Of: m, S: &m.s, Policy: syncq.NonFair}).(*condition.Cond)
}

// IsLocked reports whether anybody holds the lock.
func (m *Mutex) IsLocked() bool { return m.s.Held() }

// HasQueued reports whether anybody sleeps in the queue. A spinning goroutine is not in it yet.
func (m *Mutex) HasQueued() bool { return m.s.HasQueued() }

// QueueLength returns the number of goroutines in the queue. A spinning goroutine is not in it
// yet.
func (m *Mutex) QueueLength() int { return m.s.Len() }

// IsQueued reports whether o is in the queue.
func (m *Mutex) IsQueued(o locks.Owner) bool { return m.s.Waits(int64(o)) }

// Queued returns those in the queue, longest wait first.
func (m *Mutex) Queued() []locks.Owner { return outcome.Owners(m.s.Waiters()) }

// Inspect describes the lock, whose holder is not known. See [locks.Inspector].
func (m *Mutex) Inspect(ctx context.Context) (locks.Info, error) {
	return info.State{
		Held: m.IsLocked(), Waiting: m.QueueLength(), Waiters: m.Queued(),
	}.Answer("spin: Inspect", ctx)
}

// String describes the lock and its state.
func (m *Mutex) String() string { return describe("spin.Mutex", m, m) }

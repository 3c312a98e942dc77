package fair

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/raceorder"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/unheld"
)

// RWMutex is a read-write lock that admits in order of arrival. Any number of readers hold it at a
// time, or one writer. It has the methods of [sync.RWMutex] and can replace it: it belongs to no
// goroutine, so one goroutine may lock it and another unlock it.
//
// A reader that arrives while a goroutine waits queues behind it. Readers that wait one behind
// the other are admitted together. Neither readers nor writers starve. A goroutine that reads
// twice hangs if a writer came in between, as with sync.RWMutex. Use rwlock.RWMutex for a lock
// that knows its owners.
//
// The zero RWMutex is free. It must not be copied after first use.
//
// In the terms of the Go memory model, an Unlock synchronizes before every later acquisition, and
// an RUnlock before every later Lock.
//
// Uncontended, each call is one atomic operation. While no goroutine waits, a reader adds to a word
// that all readers share, as with sync.RWMutex. With many processors rwlock.RWMutex reads faster.
// Only waits with a context or a time limit allocate.
type RWMutex struct {
	order raceorder.Order
	s     syncq.Tallied
}

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// Lock acquires the write lock, and waits for it behind all earlier waiters.
func (rw *RWMutex) Lock() {
	if sched.On {
		sched.Begin("Lock", rw)
	}
	if raceorder.Enabled || !rw.s.TryLockFree() {
		rw.lock()
	}
}

//go:noinline // so that Lock is inlined
func (rw *RWMutex) lock() {
	if !raceorder.Enabled || !rw.tryLock() {
		rw.s.Acquire(inTurn(0), nil)
	}
	rw.order.AfterAll()
}

// tryLock acquires the lock for writing if it is free, in one step. It may fail while another
// goroutine acquires or releases the lock.
func (rw *RWMutex) tryLock() bool {
	rw.order.Ignore()
	ok := rw.s.TryLockFree()
	rw.order.Heed()
	return ok
}

// TryLock acquires the write lock if the lock is free, and reports whether it did. Java's
// writeLock().tryLock().
func (rw *RWMutex) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", rw)(&ok)
	}
	ok = rw.tryLock() || rw.s.TryLock()
	if ok {
		rw.order.AfterAll()
	}
	return ok
}

// TryLockFor acquires the write lock, waits for it in the queue for at most d, and reports
// whether it did. With d <= 0 it does not wait. Java's writeLock().tryLock(time, unit).
func (rw *RWMutex) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", rw)(&ok)
	}
	ok = rw.tryLock() || rw.s.Acquire(inTurn(goid.Get()), park.After(d)) == syncq.Acquired
	if ok {
		rw.order.AfterAll()
	}
	return ok
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. If ctx ends, the waiter is out of the queue when the call returns. Java's
// writeLock().lockInterruptibly().
func (rw *RWMutex) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", rw)(&err)
	}
	const op = "fair: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if !rw.tryLock() {
		who := int64(locks.CurrentOwner(ctx))
		if out := rw.s.Acquire(inTurn(who), park.Until(ctx)); out != syncq.Acquired {
			return outcome.Error(op, ctx, out)
		}
	}
	rw.order.AfterAll()
	return nil
}

// TryLockContext is TryLock for call sites that also work with distributed locks. A ctx that has
// ended already is an error even if the lock is free; otherwise ctx is ignored.
func (rw *RWMutex) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", rw)(&ok)
	}
	if err := ctxerr.Check("fair: TryLockContext", ctx); err != nil {
		return false, err
	}
	return rw.TryLock(), nil
}

// Unlock releases the write lock, to the longest waiter if there is one. It panics with
// [locks.ErrNotHeld] if no goroutine holds the write lock.
func (rw *RWMutex) Unlock() {
	if sched.On {
		sched.Begin("Unlock", rw)
	}
	if raceorder.Enabled || !rw.s.UnlockAlone() {
		rw.unlock()
	}
}

// unlockAlone releases the write lock, in one step. If it fails, rw.s.Unlock has to follow.
func (rw *RWMutex) unlockAlone() bool {
	rw.order.WriteEnds()
	rw.order.Ignore()
	ok := rw.s.UnlockAlone()
	rw.order.Heed()
	return ok
}

//go:noinline // so that Unlock is inlined
func (rw *RWMutex) unlock() {
	if (!raceorder.Enabled || !rw.unlockAlone()) && !rw.s.Unlock() {
		panic(rw.notHeld("Unlock"))
	}
}

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (rw *RWMutex) UnlockContext(context.Context) error {
	if sched.On {
		sched.Begin("UnlockContext", rw)
	}
	if !rw.unlockAlone() && !rw.s.Unlock() {
		return rw.notHeld("UnlockContext")
	}
	return nil
}

// notHeld returns the error of op on a lock that is not held for writing or reading, as op needs.
func (rw *RWMutex) notHeld(op string) error {
	err := unheld.Free("the fair.RWMutex")
	if rw.IsWriteLocked() {
		err = unheld.Because("the fair.RWMutex is held for writing, and Unlock releases that hold")
	} else if rw.IsReadLocked() {
		err = unheld.Because("the fair.RWMutex is held for reading, and RUnlock releases that hold")
	}
	return ctxerr.Wrap("fair: "+op, err)
}

// RLock acquires the lock for reading, and waits for it behind all earlier waiters.
func (rw *RWMutex) RLock() {
	if sched.On {
		sched.Begin("RLock", rw)
	}
	if raceorder.Enabled || !rw.s.AddShared() {
		rw.rlock()
	}
}

//go:noinline // so that RLock is inlined
func (rw *RWMutex) rlock() {
	if !raceorder.Enabled || !rw.tryRLock() {
		rw.s.AcquireShared(inTurn(0), nil)
	}
	rw.order.AfterWrites()
}

// tryRLock acquires the lock for reading if no goroutine writes or waits. If it fails,
// rw.s.AcquireShared has to follow.
func (rw *RWMutex) tryRLock() bool {
	rw.order.Ignore()
	ok := rw.s.AddShared()
	rw.order.Heed()
	return ok
}

// TryRLock acquires the lock for reading, ahead of the waiters, unless a goroutine writes, and
// reports whether it did. Java's readLock().tryLock().
func (rw *RWMutex) TryRLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryRLock", rw)(&ok)
	}
	rw.order.Ignore()
	ok = rw.s.BargeShared()
	rw.order.Heed()
	ok = ok || rw.s.TryLockShared()
	if ok {
		rw.order.AfterWrites()
	}
	return ok
}

// TryRLockFor acquires the lock for reading, waits for it in the queue for at most d, and
// reports whether it did. With d <= 0 it does not wait, and succeeds only if no goroutine writes
// or waits. Java's readLock().tryLock(time, unit).
func (rw *RWMutex) TryRLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryRLockFor", rw)(&ok)
	}
	ok = rw.tryRLock() ||
		rw.s.AcquireShared(inTurn(goid.Get()), park.After(d)) == syncq.Acquired
	if ok {
		rw.order.AfterWrites()
	}
	return ok
}

// RLockContext is RLock until ctx ends. A ctx that has ended already is an error even if the
// lock is free. If ctx ends, the waiter is out of the queue when the call returns. Java's
// readLock().lockInterruptibly().
func (rw *RWMutex) RLockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("RLockContext", rw)(&err)
	}
	const op = "fair: RLockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if !rw.tryRLock() {
		who := int64(locks.CurrentOwner(ctx))
		if out := rw.s.AcquireShared(inTurn(who), park.Until(ctx)); out != syncq.Acquired {
			return outcome.Error(op, ctx, out)
		}
	}
	rw.order.AfterWrites()
	return nil
}

// TryRLockContext is TryRLock for call sites that also work with distributed locks. A ctx that has
// ended already is an error even if the lock is free; otherwise ctx is ignored.
func (rw *RWMutex) TryRLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryRLockContext", rw)(&ok)
	}
	if err := ctxerr.Check("fair: TryRLockContext", ctx); err != nil {
		return false, err
	}
	return rw.TryRLock(), nil
}

// RUnlock releases one read hold. Any goroutine may call it. It panics with [locks.ErrNotHeld]
// without a read hold.
func (rw *RWMutex) RUnlock() {
	if sched.On {
		sched.Begin("RUnlock", rw)
	}
	if raceorder.Enabled || !rw.s.DropShared() {
		rw.runlock()
	}
}

// dropRead releases one read hold, in one step. If it fails, rw.s.UnlockShared has to follow.
func (rw *RWMutex) dropRead() bool {
	rw.order.ReadEnds()
	rw.order.Ignore()
	ok := rw.s.DropShared()
	rw.order.Heed()
	return ok
}

//go:noinline // so that RUnlock is inlined
func (rw *RWMutex) runlock() {
	if (!raceorder.Enabled || !rw.dropRead()) && !rw.s.UnlockShared() {
		panic(rw.notHeld("RUnlock"))
	}
}

// RUnlockContext is RUnlock, but returns an error that matches [locks.ErrNotHeld] where RUnlock
// panics. It ignores ctx.
func (rw *RWMutex) RUnlockContext(context.Context) error {
	if sched.On {
		sched.Begin("RUnlockContext", rw)
	}
	if !rw.dropRead() && !rw.s.UnlockShared() {
		return rw.notHeld("RUnlockContext")
	}
	return nil
}

// IsWriteLocked reports whether a goroutine holds the write lock. Java's isWriteLocked().
func (rw *RWMutex) IsWriteLocked() bool {
	exclusively, _ := rw.s.Holds()
	return exclusively
}

// NewCond returns a condition of the write lock, as Java's writeLock().newCondition() does. A wait
// by a goroutine while nobody writes is [locks.ErrNotHeld].
func (rw *RWMutex) NewCond() *condition.Cond {
	return condition.New(&attach.Lock{Locker: rw, Q: rw.s.NewCond(), Order: &rw.order})
}

// IsReadLocked reports whether a goroutine reads.
func (rw *RWMutex) IsReadLocked() bool { return rw.ReadLockCount() > 0 }

// ReadLockCount returns the number of read holds. Java's getReadLockCount().
func (rw *RWMutex) ReadLockCount() int {
	_, readers := rw.s.Holds()
	return readers
}

// HasQueued reports whether a goroutine waits for the lock, to read or to write. Java's
// hasQueuedThreads().
func (rw *RWMutex) HasQueued() bool { return rw.s.HasQueued() }

// QueueLength returns the number of goroutines that wait for the lock. Java's getQueueLength().
func (rw *RWMutex) QueueLength() int { return rw.s.Len() }

// IsQueued reports whether o waits for the lock. Java's hasQueuedThread(thread).
func (rw *RWMutex) IsQueued(o locks.Owner) bool { return rw.s.Waits(int64(o)) }

// Queued returns the owners that wait for the lock, longest wait first. Java's
// getQueuedThreads().
func (rw *RWMutex) Queued() []locks.Owner { return outcome.Owners(rw.s.Waiters()) }

// QueuedReaders returns the owners that wait to read, longest wait first. Java's
// getQueuedReaderThreads().
func (rw *RWMutex) QueuedReaders() []locks.Owner { return outcome.Owners(rw.s.WaitersFor(true)) }

// QueuedWriters returns the owners that wait to write, longest wait first. Java's
// getQueuedWriterThreads().
func (rw *RWMutex) QueuedWriters() []locks.Owner { return outcome.Owners(rw.s.WaitersFor(false)) }

// Inspect describes the lock, whose holders are not known. See [locks.Inspector].
func (rw *RWMutex) Inspect(ctx context.Context) (locks.Info, error) {
	readers := rw.IsReadLocked()
	return info.State{
		Held: readers || rw.IsWriteLocked(), Shared: readers, Waiters: rw.Queued(),
	}.Answer("fair: Inspect", ctx)
}

// String describes the lock and its state.
func (rw *RWMutex) String() string {
	state := "unlocked"
	if n := rw.ReadLockCount(); n > 0 {
		state = fmt.Sprintf("%d read holds", n)
	} else if rw.IsWriteLocked() {
		state = "write-locked"
	}
	return fmt.Sprintf("fair.RWMutex(%p)[%s, %d queued]", rw, state, rw.QueueLength())
}

// RLocker returns the read side as a [sync.Locker], like [sync.RWMutex.RLocker].
func (rw *RWMutex) RLocker() sync.Locker { return (*readView)(rw) }

// ReadLocker returns the read side for call sites that know only [locks.TryLocker]. It is the same
// value at each call, and a [sync.Locker] as well.
func (rw *RWMutex) ReadLocker() locks.TryLocker { return (*readView)(rw) }

// WriteLocker returns the write side for call sites that know only [locks.TryLocker]: the RWMutex
// itself.
func (rw *RWMutex) WriteLocker() locks.TryLocker { return rw }

// readView is the read side of an RWMutex.
type readView RWMutex

func (v *readView) rw() *RWMutex { return (*RWMutex)(v) }

func (v *readView) Lock()                           { v.rw().RLock() }
func (v *readView) Unlock()                         { v.rw().RUnlock() }
func (v *readView) TryLock() bool                   { return v.rw().TryRLock() }
func (v *readView) TryLockFor(d time.Duration) bool { return v.rw().TryRLockFor(d) }

func (v *readView) LockContext(ctx context.Context) error   { return v.rw().RLockContext(ctx) }
func (v *readView) UnlockContext(ctx context.Context) error { return v.rw().RUnlockContext(ctx) }

func (v *readView) TryLockContext(ctx context.Context) (bool, error) {
	return v.rw().TryRLockContext(ctx)
}

func (v *readView) Inspect(ctx context.Context) (locks.Info, error) { return v.rw().Inspect(ctx) }

// HasNoConditions marks a lock without conditions for package condition: readers change nothing
// that a goroutine could wait for.
func (v *readView) HasNoConditions() {}

// String describes the lock and its state.
func (v *readView) String() string { return v.rw().String() + ".ReadLocker" }

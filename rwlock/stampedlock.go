package rwlock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/raceorder"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/unheld"
)

// StampedLock is a lock with three modes. Writing excludes all other holds. Reading excludes
// writers only. Optimistic reading holds nothing and excludes nothing; it finds out at its end
// whether a writer came in between. Java's StampedLock.
//
// An acquisition returns a [Stamp], which a release or conversion needs. A stamp names a version
// of the lock, and each write hold ends a version. A write stamp becomes invalid with its
// release, and an optimistic stamp with the next write hold. A read stamp of a version releases
// any one read hold of that version.
//
//	var point struct {
//		l    rwlock.StampedLock
//		x, y atomic.Int64
//	}
//
//	func norm() int64 {
//		if st := point.l.TryOptimisticRead(); st != 0 {
//			x, y := point.x.Load(), point.y.Load()
//			if point.l.Validate(st) {
//				return x*x + y*y
//			}
//		}
//		st := point.l.ReadLock()
//		defer point.l.UnlockRead(st)
//		return ...
//	}
//
// See Validate for the rules of optimistic reading. [Snapshot] follows them for a single value.
//
// The zero StampedLock is free. It must not be copied after first use. It belongs to no goroutine:
// any goroutine that has the stamp may release. It is not reentrant: a second WriteLock by the same
// goroutine hangs. A second ReadLock hangs too if a writer began to wait in between.
//
// # Fairness
//
// WriteLock barges, as often as [locks.NonFair] allows. ReadLock does not overtake a waiting
// writer. Readers behind a writer are admitted together. If only readers wait, a release wakes
// them. A writer may overtake them before they run, for a limited time. Neither side starves the
// other. The tries without a time limit and the conversions are exceptions: they acquire what is
// free, ahead of all waiters.
//
// # Memory model
//
// In the terms of the Go memory model, a release synchronizes before the next acquisition in a
// mode that it excluded, and so do conversions. Readers are not ordered among themselves: the
// race detector reports writes under the read lock, even if they happen one after the other.
//
// # Misuse
//
// A stamp that fits no hold is zero, stale, or of another mode. With it the unlocks panic with
// [locks.ErrNotHeld], and the conversions return 0. Either way the lock is unchanged. More than two
// billion read holds fit; one more than that is refused with [locks.ErrTooManyHolds]. Versions
// repeat after 2^50 write holds: a stamp that is kept for months of constant writing could be taken
// for a new stamp.
//
// # Cost
//
// Uncontended acquisitions, releases and conversions are one compare-and-swap each and allocate
// nothing. A contended lock allocates nothing in the steady state, except for waits with a time
// limit or a context. TryOptimisticRead and Validate are one load and no store each.
//
// After many reads at the same time, with no write in between, readers no longer share a word:
// each stores into a slot that its goroutine's number chooses. The next write hold, or a try for a
// write hold, closes the slots, and takes some 100 ns longer. So do conversions, inspections of
// readers, waits, and releases in another goroutine. The slots are allocated once: 64 bytes for
// each of up to 64 readers, depending on GOMAXPROCS.
type StampedLock struct {
	state stampedWord // see stamped_state.go

	guard      sync.Mutex
	head, tail *stampedWaiter // guarded: the waiters in order of arrival
	waiting    int32          // guarded: the number of waiters
	writers    int32          // guarded: the number of waiting writers
	overflow   int32          // guarded: the number of read holds that do not fit state
	barges     syncq.Barges   // see countBarger and worthSpinning

	table atomic.Pointer[stampedTable] // see stamped_table.go
	crowd atomic.Uint32                // reads beside others; see stamped_table.go

	overdue int32 // guarded: the number of waiters for which the lock is reserved
}

var _ locks.ReadWriteLocker = (*StampedLock)(nil)

// WriteLock acquires the lock for writing, and waits for it if need be. Java's writeLock().
func (l *StampedLock) WriteLock() Stamp {
	sched.Begin("WriteLock", l)
	s := l.state.Load() & versions
	if l.state.CompareAndSwap(s, s|writing) {
		l.state.AfterAll()
		return Stamp(s | writing)
	}
	return l.write()
}

func (l *StampedLock) write() Stamp {
	if st := l.spinWrite(); st != 0 {
		return st
	}
	return l.wait(true, nil)
}

// TryWriteLock acquires the lock for writing if it is free, ahead of all waiters. If the lock
// is not free, TryWriteLock returns 0. Java's tryWriteLock().
func (l *StampedLock) TryWriteLock() (st Stamp) {
	if sched.On {
		defer sched.Tried[Stamp]("TryWriteLock", l)(&st)
	}
	return l.acquireWrite(0)
}

// TryWriteLockFor acquires the lock for writing, and waits for it for at most d. If d ends
// first, it returns 0. With d <= 0 it does not wait: it succeeds only if the lock is free and no
// goroutine waits. Java's tryWriteLock(time, unit).
func (l *StampedLock) TryWriteLockFor(d time.Duration) (st Stamp) {
	if sched.On {
		defer sched.Tried[Stamp]("TryWriteLockFor", l)(&st)
	}
	if st := l.acquireWrite(queued); st != 0 || d <= 0 {
		return st
	}
	if st := l.spinWrite(); st != 0 {
		return st
	}
	return l.wait(true, park.After(d))
}

// WriteLockContext is WriteLock until ctx ends. Then the error matches ctx.Err() and the cause,
// and the stamp is 0. A ctx that has ended already is an error even if the lock is free. If ctx
// ends, the waiter is out of the queue when the call returns. Java's writeLockInterruptibly().
func (l *StampedLock) WriteLockContext(ctx context.Context) (st Stamp, err error) {
	if sched.On {
		defer sched.Tried[Stamp]("WriteLockContext", l)(&st)
	}
	return l.writeContext("rwlock: WriteLockContext", ctx)
}

func (l *StampedLock) writeContext(op string, ctx context.Context) (Stamp, error) {
	if err := ctxerr.Check(op, ctx); err != nil {
		return 0, err
	}
	if st := l.acquireWrite(queued); st != 0 {
		return st, nil
	}
	if st := l.spinWrite(); st != 0 {
		return st, nil
	}
	if st := l.wait(true, park.Until(ctx)); st != 0 {
		return st, nil
	}
	return 0, ctxerr.Ended(op, ctx)
}

// ReadLock acquires a read hold. It waits if the lock is held for writing or a writer waits.
// Java's readLock().
func (l *StampedLock) ReadLock() Stamp {
	sched.Begin("ReadLock", l)
	s := l.state.Load()
	if s&(writing|pending|visible|readers) == 0 && l.state.CompareAndSwap(s, s+reader) {
		l.state.AfterWrites()
		return stampOf(s, read)
	}
	return l.readBeside(s)
}

// readBeside is ReadLock when the word is s, and the lock is not free.
func (l *StampedLock) readBeside(s uint64) Stamp {
	switch {
	case s&visible != 0:
		if st := l.enter(); st != 0 {
			return st
		}
	case s&(writing|pending) == 0 && s&readers != readers && l.state.CompareAndSwap(s, s+reader):
		l.state.AfterWrites()
		l.noteCrowd(s)
		return stampOf(s, read)
	}
	return mustCount(l.read(nil))
}

// read does not look at reserved. If a writer waits, read waits because of pending. If none waits,
// the lock is reserved for readers, and read shares it with them.
func (l *StampedLock) read(lim *park.Limit) Stamp {
	if st := l.spinRead(); st != 0 {
		return st
	}
	return l.wait(false, lim)
}

// TryReadLock acquires a read hold, ahead of all waiters, unless the lock is held for writing.
// If it is, TryReadLock returns 0. Java's tryReadLock().
func (l *StampedLock) TryReadLock() (st Stamp) {
	if sched.On {
		defer sched.Tried[Stamp]("TryReadLock", l)(&st)
	}
	return mustCount(l.acquireRead(0))
}

// TryReadLockFor acquires a read hold, and waits for it for at most d. If d ends first, it
// returns 0. With d <= 0 it does not wait: it succeeds only if the lock is not held for writing
// and no writer waits. Java's tryReadLock(time, unit).
func (l *StampedLock) TryReadLockFor(d time.Duration) (st Stamp) {
	if sched.On {
		defer sched.Tried[Stamp]("TryReadLockFor", l)(&st)
	}
	st = l.acquireRead(pending)
	if st == 0 && d > 0 {
		if st = l.spinRead(); st == 0 {
			st = l.wait(false, park.After(d))
		}
	}
	return mustCount(st)
}

// ReadLockContext is ReadLock until ctx ends. Then the error matches ctx.Err() and the cause,
// and the stamp is 0. A ctx that has ended already is an error even if the lock is free. If ctx
// ends, the waiter is out of the queue when the call returns. One read hold too many is
// [locks.ErrTooManyHolds]. Java's readLockInterruptibly().
func (l *StampedLock) ReadLockContext(ctx context.Context) (st Stamp, err error) {
	if sched.On {
		defer sched.Tried[Stamp]("ReadLockContext", l)(&st)
	}
	return l.readContext("rwlock: ReadLockContext", ctx)
}

func (l *StampedLock) readContext(op string, ctx context.Context) (Stamp, error) {
	if err := ctxerr.Check(op, ctx); err != nil {
		return 0, err
	}
	st := l.acquireRead(pending)
	if st == 0 {
		st = l.read(park.Until(ctx))
	}
	switch st {
	case 0:
		return 0, ctxerr.Ended(op, ctx)
	case tooMany:
		return 0, ctxerr.Wrap(op, locks.ErrTooManyHolds)
	}
	return st, nil
}

// TryOptimisticRead returns a stamp for [StampedLock.Validate], or 0 if the lock is held for
// writing. It acquires nothing, so there is nothing to release. It costs one load. Java's
// tryOptimisticRead().
func (l *StampedLock) TryOptimisticRead() Stamp {
	sched.Begin("TryOptimisticRead", l)
	s := l.state.Load()
	if s&writing != 0 {
		return 0
	}
	l.state.AfterWrites()
	return stampOf(s, optimistic)
}

// Validate reports whether nobody has held the write lock since st was issued. For a write stamp it
// reports whether its hold is still there. A read stamp is valid at least as long as its hold. 0 is
// never valid, and neither is a number that no call can have returned. It costs one load. Java's
// validate(stamp).
//
// If Validate returns true for an optimistic stamp, the goroutine's atomic loads between the two
// calls show the fields as they were at one moment. They see the stores of every write hold that
// ended before the stamp was issued, and no stores of a later write hold. This is true for fields
// that are written only under the write lock.
//
// The fields must be atomic: atomic.Int64, atomic.Pointer[T] and the like, for stores and for
// loads. A plain load during the store of a writer is a data race even if its result is
// discarded. Of a string, a slice or an interface it can return halves of two values.
//
// Copy the fields into local variables, validate, and use only the copies, and only if they are
// valid. Before that they may contradict each other: an index may be out of bounds, and a loop
// endless. An object to which a field points must never change, or its fields must be atomic too.
func (l *StampedLock) Validate(st Stamp) bool {
	sched.Begin("Validate", l)
	low := uint64(st) & (version - 1) // one bit, a mode, in each stamp that was issued
	return (l.state.Load()^uint64(st))&(versions|writing)|low&(low-1) == 0 && low&modes != 0
}

// The panics of a stamp that fits no hold. They are made once, so that the unlocks need not keep
// the lock for a look at its state.
var (
	errNoWrite = ctxerr.Wrap("rwlock: UnlockWrite",
		unheld.Because("the rwlock.StampedLock is free, or has no write hold of this stamp"))
	errNoRead = ctxerr.Wrap("rwlock: UnlockRead",
		unheld.Because("the rwlock.StampedLock is free, or has no read hold of this stamp"))
)

// UnlockWrite releases the write hold of st. It panics with [locks.ErrNotHeld] if the hold does not
// exist. Java's unlockWrite(stamp).
func (l *StampedLock) UnlockWrite(st Stamp) {
	sched.Begin("UnlockWrite", l)
	if raceorder.Enabled || st&(version-1) != writing ||
		!l.state.CompareAndSwap(uint64(st), uint64(st)+(version-writing)) {
		l.unlockWrite(st)
	}
}

//go:noinline // so that UnlockWrite stays short
func (l *StampedLock) unlockWrite(st Stamp) {
	if l.releaseWriteHold(st) == 0 {
		panic(errNoWrite)
	}
}

// UnlockRead releases one read hold of the version that st is a read stamp of. It panics with
// [locks.ErrNotHeld] if there is none. Java's unlockRead(stamp).
func (l *StampedLock) UnlockRead(st Stamp) {
	sched.Begin("UnlockRead", l)
	if l.releaseReadHold(st) == 0 {
		panic(errNoRead)
	}
}

// Unlock releases the write or read hold of st. It panics with [locks.ErrNotHeld] if the hold does
// not exist. Java's unlock(stamp).
func (l *StampedLock) Unlock(st Stamp) {
	if st.IsWriteLock() {
		l.UnlockWrite(st)
	} else {
		l.UnlockRead(st)
	}
}

// TryUnlockWrite releases the write hold, if there is one, without a stamp, and reports whether
// it did. It is for recovery from errors. Java's tryUnlockWrite().
func (l *StampedLock) TryUnlockWrite() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryUnlockWrite", l)(&ok)
	}
	for {
		s := l.state.Load()
		if s&writing == 0 {
			return false
		}
		if l.releaseWriteHold(stampOf(s, writing)) != 0 {
			return true
		}
	}
}

// TryUnlockRead releases a read hold, if there is one, without a stamp, and reports whether it
// did. It is for recovery from errors. Java's tryUnlockRead().
func (l *StampedLock) TryUnlockRead() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryUnlockRead", l)(&ok)
	}
	for {
		s := l.state.Load()
		if s&(readers|visible) == 0 {
			return false
		}
		if l.releaseReadHold(stampOf(s, read)) != 0 {
			return true
		}
	}
}

// IsWriteLocked reports whether a goroutine holds the lock for writing.
func (l *StampedLock) IsWriteLocked() bool { return l.state.Load()&writing != 0 }

// IsReadLocked reports whether a goroutine holds the lock for reading.
func (l *StampedLock) IsReadLocked() bool { return l.countReads()&readers != 0 }

// ReadLockCount returns the number of read holds.
func (l *StampedLock) ReadLockCount() int {
	l.guard.Lock()
	defer l.guard.Unlock()
	l.fold()
	return int(l.state.Load()&readers/reader) + int(l.overflow)
}

// HasQueued reports whether a goroutine waits for the lock. A reader that a release has woken does
// not count until it waits again.
func (l *StampedLock) HasQueued() bool { return l.state.Load()&queued != 0 }

// QueueLength returns the number of goroutines that wait for the lock, in either mode. A counted
// waiter has its place: no later waiter enters before it, unless both are readers. A reader that
// a release has woken does not count until it waits again.
func (l *StampedLock) QueueLength() int {
	l.guard.Lock()
	defer l.guard.Unlock()
	return int(l.waiting)
}

// Queued returns the goroutines that wait for the lock, in either mode, longest wait first. It
// leaves out woken readers, as [StampedLock.QueueLength] does.
func (l *StampedLock) Queued() []locks.Owner {
	l.guard.Lock()
	defer l.guard.Unlock()
	owners := make([]locks.Owner, 0, l.waiting)
	for n := l.head; n != nil; n = n.next {
		owners = append(owners, locks.Owner(n.who))
	}
	return owners
}

// Inspect describes the lock, whose holders are not known. It leaves out woken readers, as
// [StampedLock.QueueLength] does. See [locks.Inspector].
func (l *StampedLock) Inspect(ctx context.Context) (locks.Info, error) {
	isRead := l.IsReadLocked()
	return info.State{
		Held: isRead || l.IsWriteLocked(), Shared: isRead, Waiters: l.Queued(),
	}.Answer("rwlock: Inspect", ctx)
}

// String describes the lock and its state.
func (l *StampedLock) String() string {
	state := "unlocked"
	if l.IsWriteLocked() {
		state = "write-locked"
	} else if n := l.ReadLockCount(); n > 0 {
		state = fmt.Sprintf("%d read locks", n)
	}
	return fmt.Sprintf("rwlock.StampedLock(%p)[%s, %d queued]", l, state, l.QueueLength())
}

// mustCount returns st. It panics if st is tooMany.
func mustCount(st Stamp) Stamp {
	if st == tooMany {
		panic(locks.ErrTooManyHolds)
	}
	return st
}

package rwlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/shares"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/unheld"
)

// MaxHolds is the greatest number of write holds, and of read holds, that an owner can have of
// one [RWMutex]. One more hold is refused with [locks.ErrTooManyHolds].
const MaxHolds = syncq.MaxHolds

// RWMutex is a read-write lock that belongs to goroutines, or to explicit [locks.Owner]s. Any
// number of owners read at a time, or one writes. Java's ReentrantReadWriteLock. Its methods have
// the names of [sync.RWMutex]'s. It can replace a sync.RWMutex if the same goroutine locks and
// unlocks; otherwise use fair.RWMutex, which does not ask for the owner.
//
// It is reentrant on both sides: an owner with a hold gets another hold of the same kind at once,
// ahead of the waiters. A writer may read as well, and may keep its read holds when it stops
// writing (see [RWMutex.Downgrade]). A reader that asks to write gets [locks.ErrUpgrade] at once,
// and keeps its read hold; in Java it hangs. [RWMutex.TryUpgrade] succeeds for the only reader.
//
// Under both policies a new reader waits behind a writer that is first in the queue and sleeps.
// The last reader before that writer hands it the lock. Therefore readers cannot starve writers.
// All readers behind one writer are admitted together. Under [locks.FIFO] all waiters are admitted
// in order of arrival. Under [locks.NonFair] a free lock goes to the first goroutine that asks,
// a writer or a reader. It may overtake waiters that were just woken and have still to run, for a
// limited time: one writer, or all readers if no writer waits. The Try forms without a duration
// barge under both policies. While package deadlock refuses waits, a wait that would close a cycle
// ends with [locks.ErrDeadlock].
//
// The zero RWMutex is free and non-fair; [New] makes a fair one. It must not be
// copied after first use.
//
// The plain methods act for the calling goroutine. On misuse they panic with a value of package
// locks, and leave the lock unchanged. The Context family acts for the owner that the context
// carries, or else for the calling goroutine, and returns the same values as errors. Goroutines
// that share an explicit owner share its holds. When the owner gets the write lock, all of its
// waiters are admitted with it. When the owner gets a read lock, its waiters for reading are
// admitted. A condition wait by one of them is refused with condition.ErrSharedHolds if it would
// release a hold that another goroutine acquired.
//
// In the terms of the Go memory model, the end of a write hold synchronizes before every later
// hold, and the end of a read hold before every later write hold.
//
// A lock that several goroutines read at a time, many times between two writes, becomes biased to
// readers. Then they do not write to memory that other goroutines use: reading scales with the
// processors. A lock that has been read keeps a table with 64 bytes for each of up to 64 concurrent
// readers, depending on GOMAXPROCS. A read and its unlock take two atomic writes while the lock is
// biased, or if the read finds the lock free, else four. A re-entrant read takes none. A write and
// its unlock take two; the first write after a bias takes some 100 ns longer. Only the table
// allocates, and more readers at once than it has room for.
type RWMutex struct {
	s syncq.ReadWrite
}

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// kind describes an RWMutex to deadlock detection.
var kind = syncq.Kind{Name: "rwlock.RWMutex", Holders: shares.Holders, Refusable: true}

// party returns o as a party that may wait.
func party(o int64) syncq.Party { return syncq.Owned(o).Of(&kind) }

// recorded returns acquired, which reports whether o has acquired the lock. If so, and if package
// deadlock records acquisitions, recorded records this acquisition.
func (rw *RWMutex) recorded(o int64, acquired bool) bool {
	if acquired && goid.Recording() {
		rw.s.Acquired(party(o))
	}
	return acquired
}

// wrote is recorded for a goroutine's write lock. It counts the write, for the bias to readers.
func (rw *RWMutex) wrote(o int64, acquired bool) bool {
	if acquired {
		rw.s.Wrote()
	}
	return rw.recorded(o, acquired)
}

// New returns an RWMutex that admits by p.
func New(p locks.Policy) *RWMutex { return &RWMutex{syncq.NewReadWrite(p == locks.FIFO)} }

// Lock acquires the write lock, and waits for it if need be. A goroutine that writes already
// re-enters it. Lock panics with [locks.ErrUpgrade] if the goroutine reads. Java's
// writeLock().lock().
func (rw *RWMutex) Lock() {
	sched.Begin("Lock", rw)
	if me := goid.Fast(); me != 0 {
		// The swaps are from constants, so a processor can begin them before it has loaded w.
		if w := rw.s.Word.Load(); w == 0 {
			if rw.s.Word.CompareAndSwap(0, syncq.Value(me)) {
				rw.s.Wrote()
				return
			}
		} else if w == syncq.Awake {
			if rw.s.Word.CompareAndSwap(syncq.Awake, syncq.Awake|syncq.Value(me)) {
				rw.s.Wrote()
				rw.s.Barged()
				return
			}
		} else if syncq.Names(w, me) && rw.s.Holds < MaxHolds-1 {
			rw.s.Holds++
			return
		}
	}
	rw.lock()
}

func (rw *RWMutex) lock() {
	me := goid.Get()
	out := rw.s.Reenter(me)
	if out == syncq.NotHeld {
		out = rw.s.Acquire(party(me), nil)
		rw.wrote(me, out == syncq.Acquired)
	}
	must(out)
}

// must panics with the error of an acquisition that failed with no limit of its own.
func must(out syncq.Outcome) {
	if out != syncq.Acquired {
		panic(outcome.Cause(out))
	}
}

// TryLock acquires the write lock, ahead of the waiters, if no other owner reads or writes, and
// reports whether it did. It fails if the goroutine reads. It may fail if another goroutine is
// just acquiring a read hold. Java's writeLock().tryLock().
func (rw *RWMutex) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", rw)(&ok)
	}
	if me := goid.Fast(); me != 0 && rw.s.LockOrReenter(me) {
		rw.s.WroteOnce()
		return true
	}
	return tried(rw.tryLock(goid.Get()))
}

// tried reports whether a plain try has acquired the lock. It panics if that was misuse.
func tried(out syncq.Outcome) bool {
	if out == syncq.TooMany {
		panic(locks.ErrTooManyHolds)
	}
	return out == syncq.Acquired
}

func (rw *RWMutex) tryLock(o int64) syncq.Outcome {
	out := rw.s.Reenter(o)
	if out == syncq.NotHeld {
		out = syncq.Busy
		if rw.wrote(o, rw.s.TryLock(party(o)) || rw.s.TryLockUnread(party(o))) {
			out = syncq.Acquired
		}
	}
	return out
}

// TryLockFor is Lock with a wait of at most d, and reports whether it acquired the lock. It
// fails at once if the goroutine reads. It queues: with d <= 0 it is the try that respects the
// queue, and under [locks.FIFO] succeeds only if no goroutine waits. Java's
// writeLock().tryLock(time, unit).
func (rw *RWMutex) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", rw)(&ok)
	}
	me := goid.Get()
	out := rw.s.Reenter(me)
	if out == syncq.NotHeld {
		out = rw.s.Acquire(party(me), park.After(d))
		rw.wrote(me, out == syncq.Acquired)
	}
	return tried(out)
}

// Unlock releases one write hold. The last release frees the write lock; a goroutine that also
// reads keeps its read holds. Unlock panics with [locks.ErrNotHeld] if the goroutine does not
// write. Java's writeLock().unlock().
func (rw *RWMutex) Unlock() {
	sched.Begin("Unlock", rw)
	if me := goid.Fast(); me != 0 {
		if w := rw.s.Word.Load(); syncq.Names(w, me) {
			if rw.s.Holds > 0 {
				rw.s.Holds--
				return
			}
			if !rw.s.Covered() && rw.s.TryFree(w, syncq.Value(me)) {
				return
			}
		}
	}
	rw.unlock()
}

func (rw *RWMutex) unlock() {
	if me := goid.Get(); !rw.s.Release(me) {
		panic(rw.notWritten("Unlock", locks.Owner(me)))
	}
}

// RLock acquires the lock for reading, and waits for it if need be. A goroutine that reads or
// writes already re-enters it. Java's readLock().lock().
func (rw *RWMutex) RLock() {
	sched.Begin("RLock", rw)
	// The lock may be free. Or the goroutine may read already, as the first reader or in the slot
	// of its hash. Or that slot may be free.
	if me := goid.Fast(); me != 0 {
		if rw.s.ReadFirst(me) {
			return
		}
		if f := rw.s.First(me); f != nil {
			if f.Reenter() {
				return
			}
		} else if b := rw.s.Slot(me); b != nil {
			if o := b.Owner(); o == me || o == -me {
				if b.Reenter() {
					return
				}
			} else if rw.s.ReadSlot(b, me) || rw.s.ReadCounted(b, me) {
				return
			}
		}
	}
	rw.rlock()
}

func (rw *RWMutex) rlock() {
	me := goid.Get()
	out := rw.s.ReenterRead(me)
	if out == syncq.NotHeld {
		out = rw.s.AcquireRead(party(me), nil)
		rw.recorded(me, out == syncq.Acquired)
	}
	must(out)
}

// TryRLock acquires the lock for reading, ahead of the waiters, unless another owner writes, and
// reports whether it did. Java's readLock().tryLock().
func (rw *RWMutex) TryRLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryRLock", rw)(&ok)
	}
	if me := goid.Fast(); me != 0 {
		if rw.s.ReadFirst(me) {
			return true
		}
		if b := rw.s.Slot(me); b != nil && b.Owner() == 0 && rw.s.First(me) == nil &&
			(rw.s.ReadSlot(b, me) || rw.s.ReadCounted(b, me)) {
			return true
		}
	}
	return tried(rw.tryRLock(goid.Get()))
}

func (rw *RWMutex) tryRLock(o int64) syncq.Outcome {
	out := rw.s.ReenterRead(o)
	if out == syncq.NotHeld {
		out = syncq.Busy
		if rw.recorded(o, rw.s.TryRead(o)) {
			out = syncq.Acquired
		}
	}
	return out
}

// TryRLockFor is RLock with a wait of at most d, and reports whether it acquired the lock. It
// queues: with d <= 0 it is the try that respects the queue. Java's readLock().tryLock(time,
// unit).
func (rw *RWMutex) TryRLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryRLockFor", rw)(&ok)
	}
	me := goid.Get()
	out := rw.s.ReenterRead(me)
	if out == syncq.NotHeld {
		out = rw.s.AcquireRead(party(me), park.After(d))
		rw.recorded(me, out == syncq.Acquired)
	}
	return tried(out)
}

// RUnlock releases one read hold. It panics with [locks.ErrNotHeld] if the goroutine has none,
// even if other goroutines read. Java's readLock().unlock().
func (rw *RWMutex) RUnlock() {
	sched.Begin("RUnlock", rw)
	if me := goid.Fast(); me != 0 {
		if f := rw.s.First(me); f != nil {
			if !f.Release() && !rw.s.LeaveFirst(f) {
				rw.s.UnlockShared()
			}
			return
		}
		if b := rw.s.Slot(me); b != nil {
			if o := b.Owner(); o == me || o == -me {
				if b.Release() {
					return
				}
				if b.Free(); o < 0 {
					rw.s.UnlockShared()
				} else if !rw.s.Biased() {
					rw.s.ReadersLeft()
				}
				return
			}
		}
	}
	rw.runlock()
}

func (rw *RWMutex) runlock() {
	if me := goid.Get(); !rw.s.ReleaseRead(me) {
		panic(rw.notRead("RUnlock", locks.Owner(me)))
	}
}

// Downgrade turns one write hold of the goroutine into a read hold. If it was the last write
// hold, readers at the head of the queue are admitted too, and no writer comes in between.
// Downgrade panics with [locks.ErrNotHeld] if the goroutine does not write. Java takes two
// steps, readLock().lock() and writeLock().unlock().
func (rw *RWMutex) Downgrade() {
	sched.Begin("Downgrade", rw)
	me := goid.Get()
	out := rw.s.Downgrade(me)
	if out == syncq.NotHeld {
		panic(rw.notWritten("Downgrade", locks.Owner(me)))
	}
	must(out)
}

// TryUpgrade turns one read hold of the goroutine into a write hold, ahead of the waiters, if no
// other owner reads, and reports whether it did. If not, the read hold stays. It panics with
// [locks.ErrNotHeld] if the goroutine does not read. Java's ReentrantReadWriteLock lacks such a
// method; StampedLock has tryConvertToWriteLock.
func (rw *RWMutex) TryUpgrade() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryUpgrade", rw)(&ok)
	}
	me := goid.Get()
	out := rw.s.Upgrade(me)
	if out == syncq.NotHeld {
		panic(rw.notRead("TryUpgrade", locks.Owner(me)))
	}
	return out == syncq.Acquired
}

// LockContext acquires the write lock for ctx's owner, and waits for it until ctx ends. An owner
// that writes already re-enters it. An owner that reads gets [locks.ErrUpgrade] at once, and
// keeps its read hold. A ctx that has ended already is an error even if the lock is free, and
// even on re-entry. If ctx ends, the waiter is out of the queue when the call returns. Java's
// writeLock().lockInterruptibly().
func (rw *RWMutex) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", rw)(&err)
	}
	const op = "rwlock: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	o := int64(locks.CurrentOwner(ctx))
	if o > 0 && !goid.Recording() && rw.s.LockOrReenter(o) {
		rw.s.WroteOnce()
		return nil
	}
	return rw.lockContext(op, ctx, o)
}

func (rw *RWMutex) lockContext(op string, ctx context.Context, o int64) error {
	var out syncq.Outcome
	if o < 0 {
		out = shares.Of(&rw.s.Sync).Lock(ctx, party(o), false)
		rw.recorded(o, out == syncq.Acquired)
	} else if out = rw.s.Reenter(o); out == syncq.NotHeld {
		out = rw.s.Acquire(party(o), park.Until(ctx))
		rw.wrote(o, out == syncq.Acquired)
	}
	return outcome.Error(op, ctx, out)
}

// TryLockContext is TryLock for ctx's owner. An owner that reads gets [locks.ErrUpgrade]. A ctx
// that has ended already is an error; otherwise ctx limits nothing here.
func (rw *RWMutex) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", rw)(&ok)
	}
	const op = "rwlock: TryLockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return false, err
	}
	o := int64(locks.CurrentOwner(ctx))
	if o < 0 {
		return outcome.Try(op, rw.tryShared(o, false))
	}
	return outcome.Try(op, rw.tryLock(o))
}

// tryShared tries to acquire the write lock or a read lock for explicit owner o.
func (rw *RWMutex) tryShared(o int64, reads bool) syncq.Outcome {
	out := shares.Of(&rw.s.Sync).TryLock(o, reads)
	rw.recorded(o, out == syncq.Acquired)
	return out
}

// UnlockContext is Unlock for ctx's owner, but returns an error that matches [locks.ErrNotHeld]
// where Unlock panics. It ignores the end of ctx.
func (rw *RWMutex) UnlockContext(ctx context.Context) error {
	sched.Begin("UnlockContext", rw)
	o := locks.CurrentOwner(ctx)
	if o < 0 && shares.Of(&rw.s.Sync).Unlock(int64(o)) == syncq.Acquired || o > 0 && rw.s.Release(int64(o)) {
		return nil
	}
	return rw.notWritten("UnlockContext", o)
}

// notWritten returns the error of op by o, which does not write.
func (rw *RWMutex) notWritten(op string, o locks.Owner) error {
	err, readers := unheld.Free("the rwlock.RWMutex"), rw.Readers()
	switch writer := rw.Owner(); {
	case writer != 0:
		err = unheld.By(o, "the rwlock.RWMutex is held for writing by", "", writer)
	case slices.Contains(readers, o):
		err = unheld.Because(o.String() + " holds the rwlock.RWMutex for reading, and RUnlock releases that hold")
	case len(readers) > 0:
		err = unheld.By(o, "the rwlock.RWMutex is held for reading by", "", readers...)
	}
	return ctxerr.Wrap("rwlock: "+op, err)
}

// notRead returns the error of op by o, which does not read.
func (rw *RWMutex) notRead(op string, o locks.Owner) error {
	err, readers := unheld.Free("the rwlock.RWMutex"), rw.Readers()
	switch writer := rw.Owner(); {
	case writer == o:
		err = unheld.Because(o.String() + " holds the rwlock.RWMutex for writing, and Unlock releases that hold")
	case len(readers) > 0:
		err = unheld.By(o, "the rwlock.RWMutex is held for reading by", "", readers...)
	case writer != 0:
		err = unheld.By(o, "the rwlock.RWMutex is held for writing by", "", writer)
	}
	return ctxerr.Wrap("rwlock: "+op, err)
}

// RLockContext acquires the lock for reading for ctx's owner, and waits for it until ctx ends.
// An owner that reads or writes already re-enters it. A ctx that has ended already is an error
// even if the lock is free, and even on re-entry. Java's readLock().lockInterruptibly().
func (rw *RWMutex) RLockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("RLockContext", rw)(&err)
	}
	const op = "rwlock: RLockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	o := int64(locks.CurrentOwner(ctx))
	var out syncq.Outcome
	if o < 0 {
		out = shares.Of(&rw.s.Sync).Lock(ctx, party(o), true)
		rw.recorded(o, out == syncq.Acquired)
	} else if out = rw.s.ReenterRead(o); out == syncq.NotHeld {
		out = rw.s.AcquireRead(party(o), park.Until(ctx))
		rw.recorded(o, out == syncq.Acquired)
	}
	return outcome.Error(op, ctx, out)
}

// TryRLockContext is TryRLock for ctx's owner. A ctx that has ended already is an error;
// otherwise ctx limits nothing here.
func (rw *RWMutex) TryRLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryRLockContext", rw)(&ok)
	}
	const op = "rwlock: TryRLockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return false, err
	}
	o := int64(locks.CurrentOwner(ctx))
	if o < 0 {
		return outcome.Try(op, rw.tryShared(o, true))
	}
	return outcome.Try(op, rw.tryRLock(o))
}

// RUnlockContext is RUnlock for ctx's owner, but returns an error that matches
// [locks.ErrNotHeld] where RUnlock panics. It ignores the end of ctx.
func (rw *RWMutex) RUnlockContext(ctx context.Context) error {
	sched.Begin("RUnlockContext", rw)
	o := locks.CurrentOwner(ctx)
	if o < 0 && shares.Of(&rw.s.Sync).UnlockShared(int64(o)) == syncq.Acquired || o > 0 && rw.s.ReleaseRead(int64(o)) {
		return nil
	}
	return rw.notRead("RUnlockContext", o)
}

// DowngradeContext is Downgrade for ctx's owner, but returns an error that matches
// [locks.ErrNotHeld] where Downgrade panics. It ignores the end of ctx.
func (rw *RWMutex) DowngradeContext(ctx context.Context) error {
	sched.Begin("DowngradeContext", rw)
	const op = "DowngradeContext"
	o := locks.CurrentOwner(ctx)
	var out syncq.Outcome
	if o < 0 {
		out = shares.Of(&rw.s.Sync).Downgrade(int64(o))
	} else {
		out = rw.s.Downgrade(int64(o))
	}
	switch out {
	case syncq.Acquired:
		return nil
	case syncq.NotHeld:
		return rw.notWritten(op, o)
	}
	return ctxerr.Wrap("rwlock: "+op, outcome.Cause(out))
}

// TryUpgradeContext is TryUpgrade for ctx's owner, but returns an error that matches
// [locks.ErrNotHeld] where TryUpgrade panics. A ctx that has ended already is an error;
// otherwise ctx limits nothing here.
func (rw *RWMutex) TryUpgradeContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryUpgradeContext", rw)(&ok)
	}
	const op = "rwlock: TryUpgradeContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return false, err
	}
	o := locks.CurrentOwner(ctx)
	var out syncq.Outcome
	if o < 0 {
		out = shares.Of(&rw.s.Sync).Upgrade(&rw.s, int64(o))
	} else {
		out = rw.s.Upgrade(int64(o))
	}
	if out == syncq.NotHeld {
		return false, rw.notRead("TryUpgradeContext", o)
	}
	return out == syncq.Acquired, nil
}

// NewCond returns a new condition of the write lock. A waiting owner must write and must not read:
// the wait releases the write holds only, and could not acquire them again while the owner reads.
// Such a wait is refused with [locks.ErrUpgrade]. Java's writeLock().newCondition(). The read lock
// does not support conditions.
func (rw *RWMutex) NewCond() *condition.Cond { return rw.newCond(rw) }

// newCond returns a condition of the lock for a user that knows the lock as of.
func (rw *RWMutex) newCond(of sync.Locker) *condition.Cond {
	return condition.New(&attach.Lock{Locker: of, Q: rw.s.NewCond(), Kind: &kind, Refuse: func(o int64) error {
		if shares.ReadHolds(&rw.s, o) > 0 {
			return locks.ErrUpgrade
		}
		return nil
	}})
}

// RLocker returns the read side as a [sync.Locker], like [sync.RWMutex.RLocker].
func (rw *RWMutex) RLocker() sync.Locker { return (*readView)(rw) }

package rwlock

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/unheld"
)

// ReadLocker returns the read mode of l as a lock without stamps. Each call returns the same
// value. An unlock releases one read hold, however it was acquired, or is [locks.ErrNotHeld] if
// there is none. Besides [locks.TryLocker] the value implements [sync.Locker], TryLock and
// TryLockFor. It has no conditions. Java's asReadLock().
func (l *StampedLock) ReadLocker() locks.TryLocker { return (*stampedReader)(l) }

// WriteLocker returns the write mode of l as a lock without stamps. Each call returns the same
// value. An unlock releases the write hold, however it was acquired, or is [locks.ErrNotHeld] if
// there is none. Besides [locks.TryLocker] the value implements [sync.Locker], TryLock and
// TryLockFor. It has no conditions. Java's asWriteLock().
func (l *StampedLock) WriteLocker() locks.TryLocker { return (*stampedWriter)(l) }

type (
	stampedReader StampedLock
	stampedWriter StampedLock
)

var (
	_ sync.Locker = (*stampedReader)(nil)
	_ sync.Locker = (*stampedWriter)(nil)
)

// notHeld returns the error of op by a view in whose mode nobody holds the lock.
func (l *StampedLock) notHeld(op string) error {
	err := unheld.Free("the rwlock.StampedLock")
	if l.IsWriteLocked() {
		err = unheld.Because("the rwlock.StampedLock is held for writing")
	} else if l.IsReadLocked() {
		err = unheld.Because("the rwlock.StampedLock is held for reading")
	}
	return ctxerr.Wrap("rwlock: "+op, err)
}

func (v *stampedReader) lock() *StampedLock { return (*StampedLock)(v) }

func (v *stampedReader) Lock() { v.lock().ReadLock() }

func (v *stampedReader) TryLock() bool { return v.lock().TryReadLock() != 0 }

func (v *stampedReader) TryLockFor(d time.Duration) bool { return v.lock().TryReadLockFor(d) != 0 }

func (v *stampedReader) Unlock() {
	if !v.lock().TryUnlockRead() {
		panic(v.lock().notHeld("Unlock of a read view"))
	}
}

func (v *stampedReader) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("RLockContext", v)(&err)
	}
	_, err = v.lock().readContext("rwlock: LockContext of a read view", ctx)
	return err
}

func (v *stampedReader) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryRLockContext", v)(&ok)
	}
	const op = "rwlock: TryLockContext of a read view"
	if err := ctxerr.Check(op, ctx); err != nil {
		return false, err
	}
	st := v.lock().acquireRead(0)
	if st == tooMany {
		return false, ctxerr.Wrap(op, locks.ErrTooManyHolds)
	}
	return st != 0, nil
}

func (v *stampedReader) UnlockContext(context.Context) error {
	if !v.lock().TryUnlockRead() {
		return v.lock().notHeld("UnlockContext of a read view")
	}
	return nil
}

func (v *stampedReader) IsLocked() bool { return v.lock().IsReadLocked() }

func (v *stampedReader) QueueLength() int { return v.lock().QueueLength() }

// HasNoConditions marks a lock without conditions for package condition.
func (v *stampedReader) HasNoConditions() {}

func (v *stampedReader) Inspect(ctx context.Context) (locks.Info, error) {
	return v.lock().Inspect(ctx)
}

func (v *stampedReader) String() string { return v.lock().String() + ".ReadLocker" }

func (v *stampedWriter) lock() *StampedLock { return (*StampedLock)(v) }

func (v *stampedWriter) Lock() { v.lock().WriteLock() }

func (v *stampedWriter) TryLock() bool { return v.lock().TryWriteLock() != 0 }

func (v *stampedWriter) TryLockFor(d time.Duration) bool { return v.lock().TryWriteLockFor(d) != 0 }

func (v *stampedWriter) Unlock() {
	if !v.lock().TryUnlockWrite() {
		panic(v.lock().notHeld("Unlock of a write view"))
	}
}

func (v *stampedWriter) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", v)(&err)
	}
	_, err = v.lock().writeContext("rwlock: LockContext of a write view", ctx)
	return err
}

func (v *stampedWriter) TryLockContext(ctx context.Context) (bool, error) {
	if err := ctxerr.Check("rwlock: TryLockContext of a write view", ctx); err != nil {
		return false, err
	}
	return v.TryLock(), nil
}

func (v *stampedWriter) UnlockContext(context.Context) error {
	if !v.lock().TryUnlockWrite() {
		return v.lock().notHeld("UnlockContext of a write view")
	}
	return nil
}

func (v *stampedWriter) IsLocked() bool { return v.lock().IsWriteLocked() }

func (v *stampedWriter) QueueLength() int { return v.lock().QueueLength() }

// HasNoConditions marks a lock without conditions for package condition: a hold belongs to a
// stamp, which a wait does not know.
func (v *stampedWriter) HasNoConditions() {}

func (v *stampedWriter) Inspect(ctx context.Context) (locks.Info, error) {
	return v.lock().Inspect(ctx)
}

func (v *stampedWriter) String() string { return v.lock().String() + ".WriteLocker" }

package locks

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/unheld"
)

// SyncLocker is a [sync.Locker] with a TryLock method, such as [sync.Mutex] and [sync.RWMutex].
type SyncLocker interface {
	sync.Locker
	TryLock() bool
}

// FromSync returns l as a [TryLocker], for call sites that are written against that interface.
// The program may also lock and unlock l directly: direct holds and holds of the TryLocker
// exclude each other. The TryLocker has no owner. l must not be a lock with an owner, such as
// reentrant.Mutex: such a lock is a TryLocker already.
//
// A waiter cannot leave the queue of l. Therefore a wait under a ctx that can end tries again and
// again, with pauses of up to a millisecond. Other waiters may be served first. Locks of this
// module have a queue that a waiter can leave, and need no pauses. UnlockContext returns
// [ErrNotHeld] unless l was acquired by LockContext or TryLockContext of the same TryLocker: keep
// one TryLocker for each l. For [Multi], all TryLockers of one l are one lock. FromSync panics if l
// is nil, or a nil pointer.
func FromSync(l SyncLocker) TryLocker {
	if ctxerr.IsNil(l) {
		panic("locks: FromSync of a nil lock")
	}
	return &fromSync{l: l}
}

type fromSync struct {
	l    SyncLocker
	held atomic.Bool // acquired by LockContext or TryLockContext, and not released
}

// LockContext implements [Locker].
func (f *fromSync) LockContext(ctx context.Context) error {
	if err := ctxerr.Check("locks: LockContext", ctx); err != nil {
		return err
	}
	switch {
	case f.l.TryLock():
	case ctx.Done() == nil:
		f.l.Lock()
	default:
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
	f.held.Store(true)
	return nil
}

// wait tries to acquire the lock until it succeeds or ctx ends.
func (f *fromSync) wait(ctx context.Context) error {
	const shortest, longest = 20 * time.Microsecond, time.Millisecond
	pause := time.NewTimer(shortest)
	defer pause.Stop()
	for d := shortest; ; pause.Reset(d) {
		select {
		case <-ctx.Done():
			return ctxerr.Ended("locks: LockContext", ctx)
		case <-pause.C:
		}
		if f.l.TryLock() {
			return nil
		}
		d = min(2*d, longest)
	}
}

// TryLockContext implements [TryLocker].
func (f *fromSync) TryLockContext(ctx context.Context) (bool, error) {
	if err := ctxerr.Check("locks: TryLockContext", ctx); err != nil {
		return false, err
	}
	if !f.l.TryLock() {
		return false, nil
	}
	f.held.Store(true)
	return true, nil
}

// UnlockContext implements [Locker].
func (f *fromSync) UnlockContext(context.Context) error {
	if !f.held.CompareAndSwap(true, false) {
		return ctxerr.Wrap("locks: UnlockContext", unheld.Because(fmt.Sprintf(
			"the %T is free, or was not acquired by LockContext or TryLockContext of this TryLocker", f.l)))
	}
	f.l.Unlock()
	return nil
}

// String describes the lock, by its type alone if it has no address.
func (f *fromSync) String() string {
	if address, _, ok := identity(f.l); ok {
		return fmt.Sprintf("locks.FromSync(%T(%#x))", f.l, address)
	}
	return fmt.Sprintf("locks.FromSync(%T)", f.l)
}

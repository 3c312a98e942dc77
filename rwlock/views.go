package rwlock

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
)

// ReadLocker returns the read side for call sites that know only [locks.TryLocker]. Each call
// returns the same value, which is also a [sync.Locker].
func (rw *RWMutex) ReadLocker() locks.TryLocker { return (*readView)(rw) }

// WriteLocker returns the write side for call sites that know only [locks.TryLocker]. Each call
// returns the same value, which is also a [sync.Locker].
func (rw *RWMutex) WriteLocker() locks.TryLocker { return (*writeView)(rw) }

// readView is the read side of an RWMutex.
type readView RWMutex

var _ sync.Locker = (*readView)(nil)

func (v *readView) rw() *RWMutex { return (*RWMutex)(v) }

func (v *readView) Lock()                           { v.rw().RLock() }
func (v *readView) Unlock()                         { v.rw().RUnlock() }
func (v *readView) TryLock() bool                   { return v.rw().TryRLock() }
func (v *readView) TryLockFor(d time.Duration) bool { return v.rw().TryRLockFor(d) }

func (v *readView) LockContext(ctx context.Context) error { return v.rw().RLockContext(ctx) }

func (v *readView) TryLockContext(ctx context.Context) (bool, error) {
	return v.rw().TryRLockContext(ctx)
}

func (v *readView) UnlockContext(ctx context.Context) error { return v.rw().RUnlockContext(ctx) }

func (v *readView) Inspect(ctx context.Context) (locks.Info, error) { return v.rw().Inspect(ctx) }

// HasNoConditions marks a lock without conditions for package condition. A wait would have to
// release all read holds of its owner, and readers change nothing that a goroutine could wait
// for.
func (v *readView) HasNoConditions() {}

// String describes the lock and its state.
func (v *readView) String() string { return v.rw().String() + ".ReadLocker" }

// writeView is the write side of an RWMutex.
type writeView RWMutex

var _ sync.Locker = (*writeView)(nil)

func (v *writeView) rw() *RWMutex { return (*RWMutex)(v) }

func (v *writeView) Lock()                           { v.rw().Lock() }
func (v *writeView) Unlock()                         { v.rw().Unlock() }
func (v *writeView) TryLock() bool                   { return v.rw().TryLock() }
func (v *writeView) TryLockFor(d time.Duration) bool { return v.rw().TryLockFor(d) }

func (v *writeView) LockContext(ctx context.Context) error { return v.rw().LockContext(ctx) }

func (v *writeView) TryLockContext(ctx context.Context) (bool, error) {
	return v.rw().TryLockContext(ctx)
}

func (v *writeView) UnlockContext(ctx context.Context) error { return v.rw().UnlockContext(ctx) }

func (v *writeView) Inspect(ctx context.Context) (locks.Info, error) { return v.rw().Inspect(ctx) }

// NewCond returns a new condition of the write side.
func (v *writeView) NewCond() *condition.Cond { return v.rw().newCond(v) }

// String describes the lock and its state.
func (v *writeView) String() string { return v.rw().String() + ".WriteLocker" }

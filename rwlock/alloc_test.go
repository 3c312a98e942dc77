//go:build !lockexplore

package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

// With the tag lockexplore, an operation announces itself and its outcome, which allocates.

func TestAllocationsOfWriters(t *testing.T) {
	locktest.Run(t, locktest.ReadWrite(), locktest.Allocations)
}

func TestNoUncontendedPathOfReadersAllocates(t *testing.T) {
	raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		both := func() {
			rw.Lock()
			rw.Unlock()
			rw.RLock()
			rw.RUnlock()
		}
		for name, f := range map[string]func(){
			"read":          func() { rw.RLock(); rw.RUnlock() },
			"re-entry":      func() { rw.RLock(); rw.RLock(); rw.RUnlock(); rw.RUnlock() },
			"try":           func() { rw.TryRLock(); rw.RUnlock() },
			"timed":         func() { rw.TryRLockFor(time.Hour); rw.RUnlock() },
			"fair try":      func() { rw.TryRLockFor(0); rw.RUnlock() },
			"context":       func() { _ = rw.RLockContext(ctx); _ = rw.RUnlockContext(ctx) },
			"try context":   func() { _, _ = rw.TryRLockContext(ctx); _ = rw.RUnlockContext(ctx) },
			"write":         func() { rw.Lock(); rw.Unlock() },
			"alternating":   both,
			"downgrade":     func() { rw.Lock(); rw.Downgrade(); rw.RUnlock() },
			"upgrade":       func() { rw.RLock(); rw.TryUpgrade(); rw.Unlock() },
			"writer reads":  func() { rw.Lock(); rw.RLock(); rw.RUnlock(); rw.Unlock() },
			"view":          func() { _ = rw.ReadLocker().LockContext(ctx); _ = rw.ReadLocker().UnlockContext(ctx) },
			"plain queries": func() { rw.ReadLockCount(); rw.ReadHoldCount(); rw.IsWriteLocked(); rw.QueueLength() },
		} {
			f() // makes the table, once
			require.Zero(t, testing.AllocsPerRun(200, f), name)
		}
		isFree(t, rw)
	})
}

func TestNoUncontendedPathOfAStampedAllocates(t *testing.T) {
	var l rwlock.StampedLock
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := l.ReadLocker(), l.WriteLocker()
	for name, f := range map[string]func(){
		"WriteLock":        func() { l.UnlockWrite(l.WriteLock()) },
		"TryWriteLock":     func() { l.Unlock(l.TryWriteLock()) },
		"TryWriteLockFor":  func() { l.Unlock(l.TryWriteLockFor(time.Hour)) },
		"WriteLockContext": func() { st, _ := l.WriteLockContext(ctx); l.Unlock(st) },
		"ReadLock":         func() { l.UnlockRead(l.ReadLock()) },
		"TryReadLock":      func() { l.Unlock(l.TryReadLock()) },
		"TryReadLockFor":   func() { l.Unlock(l.TryReadLockFor(time.Hour)) },
		"ReadLockContext":  func() { st, _ := l.ReadLockContext(ctx); l.Unlock(st) },
		"optimistic":       func() { l.Validate(l.TryOptimisticRead()) },
		"conversions": func() {
			st := l.TryConvertToReadLock(l.TryOptimisticRead())
			st = l.TryConvertToReadLock(l.TryConvertToWriteLock(st))
			l.TryConvertToOptimisticRead(st)
		},
		"failed tries": func() {
			st := l.WriteLock()
			l.TryWriteLock()
			l.TryReadLock()
			l.TryWriteLockFor(0)
			l.TryReadLockFor(0)
			l.UnlockWrite(st)
		},
		"views": func() {
			_ = l.ReadLocker().LockContext(ctx)
			_ = r.UnlockContext(ctx)
			_ = l.WriteLocker().LockContext(ctx)
			_ = w.UnlockContext(ctx)
		},
		"the queries": func() {
			l.IsWriteLocked()
			l.IsReadLocked()
			l.ReadLockCount()
			l.HasQueued()
			l.QueueLength()
		},
	} {
		require.Zero(t, testing.AllocsPerRun(200, f), name)
	}
	stampedFree(t, &l)
}

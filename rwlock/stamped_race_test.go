//go:build race

package rwlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/racetest"
	"github.com/jucgo/locks/rwlock"
)

// reading are ways to run f under a read hold.
var reading = racetest.Ways[rwlock.StampedLock]{
	"ReadLock":     func(l *rwlock.StampedLock, f func()) { st := l.ReadLock(); f(); l.UnlockRead(st) },
	"TryReadLock":  func(l *rwlock.StampedLock, f func()) { st := l.TryReadLock(); f(); l.Unlock(st) },
	"TryUnlock":    func(l *rwlock.StampedLock, f func()) { l.ReadLock(); f(); l.TryUnlockRead() },
	"toOptimistic": func(l *rwlock.StampedLock, f func()) { st := l.ReadLock(); f(); l.TryConvertToOptimisticRead(st) },
	"fromOptimistic": func(l *rwlock.StampedLock, f func()) {
		st := l.TryConvertToReadLock(l.TryOptimisticRead())
		f()
		l.UnlockRead(st)
	},
	"ReadLocker": func(l *rwlock.StampedLock, f func()) {
		_ = locks.Do(context.Background(), l.ReadLocker(), func(context.Context) error { f(); return nil })
	},
}

// writing are ways to run f under a write hold.
var writing = racetest.Ways[rwlock.StampedLock]{
	"WriteLock":    func(l *rwlock.StampedLock, f func()) { st := l.WriteLock(); f(); l.UnlockWrite(st) },
	"TryWriteLock": func(l *rwlock.StampedLock, f func()) { st := l.TryWriteLock(); f(); l.Unlock(st) },
	"TryUnlock":    func(l *rwlock.StampedLock, f func()) { l.WriteLock(); f(); l.TryUnlockWrite() },
	"fromRead": func(l *rwlock.StampedLock, f func()) {
		st := l.TryConvertToWriteLock(l.ReadLock())
		f()
		l.Unlock(st)
	},
	"toOptimistic": func(l *rwlock.StampedLock, f func()) {
		st := l.WriteLock()
		f()
		l.TryConvertToOptimisticRead(st)
	},
	"fromOptimistic": func(l *rwlock.StampedLock, f func()) {
		st := l.TryConvertToWriteLock(l.TryOptimisticRead())
		f()
		l.UnlockWrite(st)
	},
	"toRead": func(l *rwlock.StampedLock, f func()) {
		st := l.WriteLock()
		f()
		l.UnlockRead(l.TryConvertToReadLock(st))
	},
}

func TestWritesUnderTheReadLockAreReported(t *testing.T) {
	racetest.WritesAreReported(t, "stamped_race_test.go", reading)
}

func TestHoldsThatExcludeEachOtherOrderTheirAccesses(t *testing.T) {
	racetest.ExclusiveHoldsAreOrdered(t, reading, writing)
}

func TestOptimisticReadSeesPlainWritesOfEarlierHolds(t *testing.T) {
	var l rwlock.StampedLock
	var config []string
	racetest.InTurn(func() {
		st := l.WriteLock()
		config = []string{"ready"}
		l.UnlockWrite(st)
	}, func() {
		st := l.TryOptimisticRead()
		got := config
		require.True(t, l.Validate(st))
		require.Equal(t, []string{"ready"}, got)
	})
}

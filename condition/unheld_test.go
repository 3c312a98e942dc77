package condition_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

func TestASignalWithoutTheLockSaysWhoHasIt(t *testing.T) {
	mine, other := locks.NewOwner(), locks.NewOwner()
	a, b := locks.WithOwner(t.Context(), mine), locks.WithOwner(t.Context(), other)
	t.Run("a lock that does not know its holders", func(t *testing.T) {
		var rw fair.RWMutex
		c := condition.New(&rw)
		require.ErrorContains(t, c.SignalContext(a), "the fair.RWMutex is free")
		rw.RLock()
		require.ErrorContains(t, c.SignalContext(a), "the fair.RWMutex is held for reading")
		rw.RUnlock()
	})
	t.Run("a lock that knows its holders", func(t *testing.T) {
		var rw rwlock.RWMutex
		c := condition.New(&rw)
		require.ErrorContains(t, c.SignalContext(a), "the rwlock.RWMutex is free")
		require.NoError(t, rw.LockContext(b))
		require.ErrorContains(t, c.SignalContext(a), "the rwlock.RWMutex is held by "+other.String())
		require.NoError(t, rw.UnlockContext(b))
		require.NoError(t, rw.RLockContext(b))
		require.ErrorContains(t, c.SignalContext(a), "the rwlock.RWMutex is held for reading by "+other.String())
		require.NoError(t, rw.RLockContext(a))
		require.ErrorContains(t, c.SignalContext(a), mine.String()+" holds the rwlock.RWMutex for reading only")
		require.NoError(t, rw.RUnlockContext(a))
		require.NoError(t, rw.RUnlockContext(b))
	})
}

func TestAZeroCondSaysThatItHasNoLock(t *testing.T) {
	var zero condition.Cond
	for name, use := range plainUses(&zero) {
		t.Run(name, func(t *testing.T) { locktest.PanicsWith(t, condition.ErrNoLock, use) })
	}
	for name, err := range contextUses(&zero, t.Context()) {
		require.ErrorIs(t, err, condition.ErrNoLock)
		require.ErrorContains(t, err, "condition: "+name+": ")
	}
	_, err := zero.WaitersContext(t.Context())
	require.ErrorIs(t, err, condition.ErrNoLock)
}

func TestAPanicWithoutTheLockNamesTheMethod(t *testing.T) {
	var l reentrant.Mutex
	for name, use := range plainUses(l.NewCond()) {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				require.ErrorIs(t, err, locks.ErrNotHeld)
				if name == "HasWaiters" {
					name = "WaitQueueLength"
				}
				require.ErrorContains(t, err, "condition: "+strings.TrimSuffix(name, " 0")+": ")
			}()
			use()
		})
	}
}

func TestAConditionOfAViewNamesTheLock(t *testing.T) {
	var rw rwlock.RWMutex
	c := condition.New(rw.WriteLocker().(sync.Locker))
	require.ErrorContains(t, c.SignalContext(t.Context()), "the rwlock.RWMutex is free")
}

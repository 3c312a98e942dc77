package filelock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func TestAnUnlockElsewhereNamesTheHolderAndTheRemedy(t *testing.T) {
	rw := provide(t, t.TempDir()).RWMutex("it")
	a, b := locks.NewOwner(), locks.NewOwner()
	first, second := locks.WithOwner(t.Context(), a), locks.WithOwner(t.Context(), b)
	want := fmt.Sprintf("lock not held by the caller, %v: the lock is held by %v of this process; "+
		"a hold belongs to the goroutine that acquired it, or to an owner (locks.WithOwner)", b, a)
	for _, l := range []locks.TryLocker{rw.WriteLocker(), rw.ReadLocker()} {
		require.NoError(t, l.LockContext(first))
		for _, half := range []locks.TryLocker{rw.WriteLocker(), rw.ReadLocker()} {
			err := half.UnlockContext(second)
			require.ErrorContains(t, err, want)
			require.ErrorIs(t, err, locks.ErrNotHeld)
			if half != l {
				require.ErrorContains(t, half.UnlockContext(first), fmt.Sprintf("%v holds the other half", a))
			}
		}
		require.NoError(t, l.UnlockContext(first))
	}
}

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	c, a := provide(t, t.TempDir()), locks.WithOwner(t.Context(), locks.NewOwner())
	l := c.Mutex("it")
	err := l.UnlockContext(a)
	require.EqualError(t, err, `filelock: unlock "it": lock not held by the caller: the lock has no holder here; another process may hold it`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	_, err = l.Hold(a)
	require.EqualError(t, err, `filelock: hold "it": lock not held by the caller: the lock has no holder here; another process may hold it`)

	rw := c.RWMutex("it")
	require.NoError(t, rw.ReadLocker().LockContext(a))
	err = rw.WriteLocker().LockContext(a)
	require.EqualError(t, err, `filelock: lock "it": read lock cannot be upgraded to the write lock: release the read lock first`)
	require.ErrorIs(t, err, locks.ErrUpgrade)
	require.NoError(t, rw.ReadLocker().UnlockContext(a))

	require.NoError(t, c.Close(a))
	_, err = l.TryLockContext(a)
	require.EqualError(t, err, `filelock: try lock "it": client closed`)
	require.ErrorIs(t, err, locks.ErrClosed)
	err = rw.ReadLocker().LockContext(a)
	require.EqualError(t, err, `filelock: lock "it" (shared): client closed`)
	require.Equal(t, 1, strings.Count(err.Error(), ": client closed"))
}

package filelock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	c, a := provide(t, t.TempDir()), locks.WithOwner(t.Context(), locks.NewOwner())
	l := c.Mutex("it")
	err := l.UnlockContext(a)
	require.EqualError(t, err, `filelock: unlock "it": lock not held by the caller`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	_, err = l.Hold(a)
	require.EqualError(t, err, `filelock: hold "it": lock not held by the caller`)

	rw := c.RWMutex("it")
	require.NoError(t, rw.ReadLocker().LockContext(a))
	err = rw.WriteLocker().LockContext(a)
	require.EqualError(t, err, `filelock: lock "it": read lock cannot be upgraded to the write lock`)
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

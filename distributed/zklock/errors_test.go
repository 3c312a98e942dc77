package zklock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/zklock"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	s := zklock.LendServer(t)
	c, a := open(t, s.Addr()), adaptertest.Owner()
	l := c.Mutex("it")
	err := l.UnlockContext(a)
	require.EqualError(t, err, `zklock: unlock "/it": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.EqualError(t, c.Mutex("a//b").LockContext(a),
		`zklock: lock "a//b": the name is empty or has an empty part`)
	_, err = c.Mutex("a/../b").TryLockContext(a)
	require.EqualError(t, err, `zklock: try lock "a/../b": the name has the part ".."`)
	require.EqualError(t, c.Revoke(a, "a//b"),
		`zklock: revoke "a//b": the name is empty or has an empty part`)
	require.EqualError(t, c.Revoke(a, strings.Repeat("n", 1025)),
		`zklock: revoke "`+strings.Repeat("n", 1024)+`": the name has 1025 bytes: at most 1024 are allowed`)

	rw := c.RWMutex("rw")
	require.NoError(t, rw.ReadLocker().LockContext(a))
	err = rw.WriteLocker().LockContext(a)
	require.EqualError(t, err, `zklock: lock "/rw": read lock cannot be upgraded to the write lock: release the read lock first`)
	require.ErrorIs(t, err, locks.ErrUpgrade)
	require.NoError(t, rw.ReadLocker().UnlockContext(a))

	semaphore := c.SemaphoreMutex("semaphore")
	require.NoError(t, semaphore.LockContext(a))
	err = semaphore.LockContext(a)
	require.EqualError(t, err, `zklock: lock "/semaphore": held by the caller: deadlock`)
	require.ErrorIs(t, err, locks.ErrDeadlock)
	require.NoError(t, semaphore.UnlockContext(a))

	require.NoError(t, c.Close(background))
	err = l.LockContext(a)
	require.EqualError(t, err, `zklock: lock "/it": client closed`)
	require.ErrorIs(t, err, locks.ErrClosed)
}

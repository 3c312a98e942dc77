package etcdlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	c, a := open(t, connect(t, s.addr)), adaptertest.Owner()
	l := c.Mutex("it")
	err := l.UnlockContext(a)
	require.EqualError(t, err, `etcdlock: unlock "it": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	_, err = l.Hold(a)
	require.EqualError(t, err, `etcdlock: hold "it": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect`)
	require.EqualError(t, c.Mutex("").LockContext(a), `etcdlock: lock "": the name is empty`)
	_, err = c.Mutex(strings.Repeat("n", 4097)).TryLockContext(a)
	require.EqualError(t, err, `etcdlock: try lock "`+strings.Repeat("n", 64)+
		`...": the name has 4097 bytes, at most 4096 are allowed`)

	rw := c.RWMutex("it")
	require.NoError(t, rw.ReadLocker().LockContext(a))
	err = rw.WriteLocker().LockContext(a)
	require.EqualError(t, err,
		`etcdlock: lock "it%rw": read lock cannot be upgraded to the write lock: release the read lock first`)
	require.ErrorIs(t, err, locks.ErrUpgrade)
	require.NoError(t, rw.ReadLocker().UnlockContext(a))

	require.NoError(t, c.Close(background))
	err = l.LockContext(a)
	require.EqualError(t, err, `etcdlock: lock "it": client closed`)
	require.ErrorIs(t, err, locks.ErrClosed)
}

package etcdlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

func TestNamesListsLockKeysBelowThePrefix(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	c := open(t, direct, etcdlock.WithPrefix("/app/"))
	none := open(t, connect(t, s.addr))
	a := adaptertest.Owner()
	require.NoError(t, c.Mutex("a/b%").LockContext(a))
	require.NoError(t, c.RWMutex("shared").ReadLocker().LockContext(a))
	require.NoError(t, c.RWMutex("shared").ReadLocker().LockContext(adaptertest.Owner()), "under another key")
	require.NoError(t, c.RWMutex("alone").WriteLocker().LockContext(a))
	require.NoError(t, none.Mutex("bare").LockContext(a))
	granted, err := direct.Grant(background, 60)
	require.NoError(t, err)
	for _, key := range []string{
		"/app/", "/app/x", "/app/no/abc/1f", "/app/of/people", "/app/50%/1f", "/app//1f", "/app/dash/-1",
	} {
		_, err := direct.Put(background, key, "", clientv3.WithLease(granted.ID))
		require.NoError(t, err)
	}
	_, err = direct.Put(background, "/app/unleased/1f", "")
	require.NoError(t, err)
	session, err := concurrency.NewSession(direct)
	require.NoError(t, err)
	defer session.Close()
	require.NoError(t, concurrency.NewMutex(session, c.Prefix("stock")).Lock(background))

	names, err := c.Names(background, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a/b%", "alone", "shared", "stock"}, names)
	names, err = c.Names(background, "s*")
	require.NoError(t, err)
	require.Equal(t, []string{"shared", "stock"}, names)
	names, err = none.Names(background, "b*")
	require.NoError(t, err)
	require.Equal(t, []string{"bare"}, names)
	_, err = c.Names(nil, "") //nolint:staticcheck // what is tested
	require.ErrorIs(t, err, locks.ErrNilContext)
}

func TestNamesOfSeveralPagesAreAllListed(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	c := open(t, direct)
	granted, err := direct.Grant(background, 60)
	require.NoError(t, err)
	for page := range 21 {
		var puts []clientv3.Op
		for i := range 100 {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("it%04d/1f", 100*page+i), "", clientv3.WithLease(granted.ID)))
		}
		_, err := direct.Txn(background).Then(puts...).Commit()
		require.NoError(t, err)
	}
	names, err := c.Names(background, "it*")
	require.NoError(t, err)
	require.Len(t, names, 2100)
}

func TestForceUnlockDeletesTheKeyAndWakesWaiters(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	c, d := open(t, direct), open(t, connect(t, s.addr))
	a, b := adaptertest.Owner(), adaptertest.Owner()
	l, m := c.Mutex("it"), d.Mutex("it")
	require.NoError(t, l.LockContext(a))
	hold, err := l.Hold(a)
	require.NoError(t, err)
	got := make(chan error, 1)
	go func() { got <- m.LockContext(b) }()
	require.Eventually(t, func() bool {
		info, err := l.Inspect(a)
		return err == nil && info.Waiting == 1
	}, time.Minute, 5*time.Millisecond)
	was, err := d.Mutex("it").ForceUnlock(background)
	require.NoError(t, err)
	require.True(t, was)
	require.NoError(t, <-got)
	select {
	case <-hold.Lost():
	case <-time.After(long):
		t.Fatal("the holder is not told of its loss")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	next, err := m.Hold(b)
	require.NoError(t, err)
	require.NoError(t, next.Err())

	_, err = direct.Put(background, "other/1f", "")
	require.NoError(t, err)
	_, err = c.Mutex("other").ForceUnlock(background)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, err = c.RWMutex("it").WriteMutex().ForceUnlock(background)
	require.True(t, errors.Is(err, errors.ErrUnsupported))
}

func TestForceUnlockOfARefusedNameTouchesNothing(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	granted, err := direct.Grant(background, 60)
	require.NoError(t, err)
	for _, key := range []string{"/registry/other-service/endpoint", "/app//1f"} {
		_, err := direct.Put(background, key, "", clientv3.WithLease(granted.ID))
		require.NoError(t, err)
	}
	c := open(t, direct, etcdlock.WithPrefix("/app/"))
	for _, l := range []*lease.Mutex{
		c.MutexLocker(""), c.Mutex(""),
		c.RWMutex("").ReadMutex(), c.RWMutex("").WriteMutex(),
	} {
		_, err := l.ForceUnlock(background)
		assert.Error(t, err)
		_, err = l.TryLockContext(background)
		assert.Error(t, err)
		assert.Error(t, l.LockContext(background))
		assert.Error(t, l.UnlockContext(background))
		_, err = l.Inspect(background)
		assert.Error(t, err)
		_, err = l.Hold(background)
		assert.Error(t, err)
	}
	require.Len(t, keys(t, direct, "/"), 2)
}

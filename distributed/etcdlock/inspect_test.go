package etcdlock_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

func inspect(t *testing.T, l locks.TryLocker) locks.Info {
	t.Helper()
	i, err := l.(locks.Inspector).Inspect(background)
	require.NoError(t, err)
	return i
}

func TestInspectDescribesHolderAndWaitersInOrder(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	l := open(t, connect(t, s.addr), etcdlock.WithLabel("orders")).Mutex("it")
	require.False(t, inspect(t, l).Held)
	o := locks.NewOwner()
	own := as(o)
	h := adaptertest.Hold(t, l, own)

	session, err := concurrency.NewSession(direct)
	require.NoError(t, err)
	defer session.Close()
	stock := concurrency.NewMutex(session, l.Name())
	got := make(chan error, 1)
	go func() { got <- stock.Lock(background) }()
	queued(t, direct, "it/", 2)
	other := open(t, connect(t, s.addr), etcdlock.WithLabel("billing")).Mutex("it")
	b := adaptertest.Owner()
	waits := adaptertest.Start(other, b)
	queued(t, direct, "it/", 3)

	for _, viewer := range []*lease.Mutex{l, other} {
		i := inspect(t, viewer)
		require.True(t, i.Held)
		require.False(t, i.Shared)
		require.Len(t, i.Holders, 1)
		p := i.Holders[0]
		require.Equal(t, "orders", p.Label)
		require.Equal(t, os.Getpid(), p.PID)
		require.Equal(t, h.Token(), p.Token)
		require.WithinDuration(t, time.Now(), p.Since, time.Minute)
		require.InDelta(t, lease.DefaultLease, p.Left, float64(20*time.Second))
		require.Equal(t, 2, i.Waiting)
		require.Len(t, i.Waiters, 2)
		require.NotContains(t, i.Waiters[0].Label, "/", "the lease of etcd's own mutex")
		require.NotEmpty(t, i.Waiters[0].Label)
		require.Equal(t, "billing", i.Waiters[1].Label)
	}
	require.Equal(t, o, inspect(t, l).Holders[0].Owner)
	require.NoError(t, l.UnlockContext(own))
	require.NoError(t, adaptertest.Result(t, got))
	i := inspect(t, l)
	require.Equal(t, strings.TrimPrefix(stock.Key(), "it/"), i.Holders[0].Label)
	require.NoError(t, stock.Unlock(background))
	require.NoError(t, adaptertest.Result(t, waits))
	require.NoError(t, other.UnlockContext(b))
	require.False(t, inspect(t, l).Held)
}

func TestEitherHalfDescribesAReadWriteLock(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	read, write := rw(t, s)
	_, write2 := rw(t, s)
	o := locks.NewOwner()
	own, b := as(o), adaptertest.Owner()
	both := func(shared bool, waiting int) {
		t.Helper()
		for _, half := range []*lease.Mutex{read, write} {
			i := inspect(t, half)
			require.True(t, i.Held)
			require.Equal(t, shared, i.Shared)
			require.Len(t, i.Holders, 1)
			require.Equal(t, o, i.Holders[0].Owner)
			require.NotZero(t, i.Holders[0].PID)
			require.Equal(t, waiting, i.Waiting)
		}
	}
	adaptertest.Hold(t, write, own)
	both(false, 0)
	adaptertest.Hold(t, read, own)
	got := adaptertest.Start(write2, b)
	queued(t, direct, writeKeys, 2)
	both(false, 1)
	require.NoError(t, write.UnlockContext(own))
	both(true, 1)
	require.NoError(t, read.UnlockContext(own))
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, write2.UnlockContext(b))
}

func TestInspectFindsForeignKeys(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	_, err := connect(t, s.addr).Put(background, "it/data", "mine")
	require.NoError(t, err)
	c := open(t, connect(t, s.addr))
	_, err = c.Mutex("it").Inspect(background)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, err = c.Mutex("").Inspect(background)
	require.ErrorContains(t, err, "the name is empty")
	_, err = etcdlock.New(connect(t, s.addr), etcdlock.WithLabel("two\nlines"))
	require.ErrorContains(t, err, "etcdlock: label")
}

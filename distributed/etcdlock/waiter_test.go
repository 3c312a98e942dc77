package etcdlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/internal/test/testbed"
)

// placed waits until the waiter has a place behind the holder again.
func placed(t *testing.T, c *clientv3.Client, prefix string, got <-chan error) {
	t.Helper()
	require.Eventually(t, func() bool {
		select {
		case err := <-got:
			t.Fatalf("it waits no longer: %v", err)
		default:
		}
		return len(keys(t, c, prefix)) == 2
	}, long, time.Millisecond)
}

// waiting waits until one holder has the lock and one waiter watches: the holder its key, and the
// waiter its own and the holder's. By then the waiter has had an answer.
func waiting(t *testing.T, s *server) {
	t.Helper()
	watchers(t, s, 3)
}

// watchers waits until the server has n watches.
func watchers(t *testing.T, s *server, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.watchedBy(n) }, long, 10*time.Millisecond)
}

// newest returns the create revision of the newest key that begins with prefix.
func newest(t *testing.T, c *clientv3.Client, prefix string) int64 {
	t.Helper()
	resp, err := c.Get(background, prefix, clientv3.WithLastCreate()...)
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
	return resp.Kvs[0].CreateRevision
}

func TestAWaiterBeginsAnewAfterALongPartition(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(p *leasetest.Proxy){
		"cut":     (*leasetest.Proxy).Cut,
		"refused": (*leasetest.Proxy).Refuse,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := lendServer(t)
			p := leasetest.NewProxy(t, s.addr)
			direct := connect(t, s.addr)
			holder, a, b := open(t, direct).Mutex("it"), adaptertest.Owner(), adaptertest.Owner()
			noPoll := etcdlock.WithLeaseOptions(lease.WithPoll(time.Hour))
			c := open(t, connect(t, p.Addr()), etcdlock.WithTTL(3*short), noPoll)
			adaptertest.Hold(t, holder, a)
			got := adaptertest.Start(c.Mutex("it"), b)
			waiting(t, s)
			trouble(p)
			queued(t, direct, "it/", 1) // its lease is over
			p.Heal()
			placed(t, direct, "it/", got)
			require.NoError(t, holder.UnlockContext(a))
			require.NoError(t, adaptertest.Result(t, got), "woken, since it does not poll")
			require.NoError(t, c.Mutex("it").UnlockContext(b))
		})
	}
}

func TestAWaiterBeginsAnewAfterALongPause(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	holder, a := open(t, direct).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	child := testbed.Child(t, "wait", s.addr)
	waiting(t, s)
	child.Pause()
	queued(t, direct, "it/", 1)
	child.Resume()
	queued(t, direct, "it/", 2)
	require.NoError(t, holder.UnlockContext(a))
	require.Equal(t, "<nil>", child.Line())
}

func TestAWaiterWithoutItsPlaceBeginsAnew(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	for name, take := range map[string]func(key string) error{
		"key":   func(key string) error { _, err := direct.Delete(background, key); return err },
		"lease": func(key string) error { _, err := direct.Revoke(background, leaseOf(t, direct, key)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			holder, a, b := open(t, direct).Mutex(name), adaptertest.Owner(), adaptertest.Owner()
			l := open(t, connect(t, s.addr), etcdlock.WithLeaseOptions(lease.WithPoll(time.Hour))).Mutex(name)
			h := adaptertest.Hold(t, holder, a)
			got := adaptertest.Start(l, b)
			queued(t, direct, name+"/", 2)
			mine, rev := keys(t, direct, name+"/")[1], newest(t, direct, name+"/")
			require.NoError(t, take(mine))
			require.Eventually(t, func() bool {
				return len(keys(t, direct, name+"/")) == 2 && newest(t, direct, name+"/") > rev
			}, long, time.Millisecond, "it has a new place")
			require.NoError(t, h.Err())
			require.NoError(t, holder.UnlockContext(a))
			require.NoError(t, adaptertest.Result(t, got))
			require.NoError(t, l.UnlockContext(b))
		})
	}
}

func TestAWaiterKeepsThePlaceItMadeAnew(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	holder, l := open(t, direct).Mutex("it"), open(t, connect(t, s.addr), term(5*short)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	got := adaptertest.Start(l, b)
	waiting(t, s)
	rev := newest(t, direct, "it/")
	_, err := direct.Delete(background, keys(t, direct, "it/")[1])
	require.NoError(t, err)
	placed(t, direct, "it/", got)
	again := newest(t, direct, "it/")
	require.Greater(t, again, rev)
	time.Sleep(6 * short) // its session is kept alive
	require.Equal(t, again, newest(t, direct, "it/"))
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, l.UnlockContext(b))
}

func TestTimeLimitsOfRequestsAreNotTheCallers(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	// A lease that is over early is an error too.
	l, a := open(t, connect(t, p.Addr()), etcdlock.WithTTL(9*short)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	p.Cut()
	_, try := open(t, connect(t, p.Addr()), etcdlock.WithTTL(short)).Mutex("other").TryLockContext(a)
	for what, err := range map[string]error{
		"try": try, "extend": h.Extend(a, 30*short), "unlock": l.UnlockContext(a),
	} {
		require.Error(t, err, what)
		require.NotErrorIs(t, err, context.DeadlineExceeded, what)
		require.NotErrorIs(t, err, context.Canceled, what)
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
}

package redislock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
)

func TestAWaitForReplicasThatCannotWorkIsRefused(t *testing.T) {
	c := connectFor(t, "127.0.0.1:1", 200*time.Millisecond)
	for _, opt := range []redislock.Option{
		redislock.WithReplicas(-1, time.Second), redislock.WithReplicas(1, 0), redislock.WithReplicas(1,
			200*time.Millisecond),
	} {
		_, err := redislock.New(c, opt)
		require.Error(t, err)
	}
}

func TestARenewalTellsALockThatDiedWithItsMaster(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	link := leasetest.NewProxy(t, master.Addr)
	replica := startReplica(t, link.Addr())
	front := leasetest.NewProxy(t, master.Addr) // the address of the master, whichever that is
	l := open(t, connect(t, front.Addr()), term(3*time.Second)).Mutex("it")
	a, b := someone(), someone()
	link.Cut()
	h := hold(t, l, a)
	master.Kill()
	failOver(t, replica)
	rival := open(t, patient(t, replica.Addr)).Mutex("it")
	hold(t, rival, b)
	require.NoError(t, h.Err(), "the first one does not know")
	front.Lead(replica.Addr)
	select {
	case <-h.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("the renewal did not tell")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

// A lease of which most is over when the reply comes is of no use.
func TestALookupWaitsForReplicasForHalfTheLease(t *testing.T) {
	t.Parallel()
	p := leasetest.NewProxy(t, startMaster(t).Addr)
	l := open(t, connectFor(t, p.Addr(), 2*time.Minute), term(time.Second), redislock.WithReplicas(1, time.Minute)).
		Mutex("it")
	ctx := someone()
	_, err := l.TryLockContext(ctx)
	require.ErrorIs(t, err, redislock.ErrNotReplicated)
	p.DropReply("evalsha", 1)
	began := time.Now()
	got := make(chan error, 1)
	go func() {
		_, err := l.TryLockContext(ctx)
		got <- err
	}()
	require.Eventually(t, func() bool { return p.Drops() == 1 }, soon, time.Millisecond)
	p.Reset()
	require.Error(t, <-got)
	require.Less(t, time.Since(began), 30*time.Second)
}

func TestALookupWritesNothingUnlessReplicasAreAwaited(t *testing.T) {
	t.Parallel()
	s := startMaster(t)
	direct := connect(t, s.Addr)
	var stores []lease.Store
	c := open(t, direct, redislock.WithLeaseOptions(lease.WithWrapper(func(s lease.Store) lease.Store {
		stores = append(stores, s)
		return s
	})))
	for name, kind := range anyKind {
		kind(c, name)
	}
	require.Len(t, stores, 6)
	req := func(i int) lease.Request {
		return lease.Request{HoldID: lease.HoldID{
			Name: fmt.Sprint(i), Acquisition: "c0ffee00-0000-8000-8000-000000000000:1",
		}, TTL: time.Minute}
	}
	for i, store := range stores {
		r, err := store.Acquire(background, req(i))
		require.NoError(t, err)
		require.True(t, r.Held)
	}
	require.NoError(t, direct.ConfigSet(background, "min-replicas-to-write", "1").Err(), "it refuses to write")
	for i, store := range stores {
		r, err := store.Lookup(background, req(i))
		require.NoError(t, err)
		require.True(t, r.Held)
	}
	require.NoError(t, direct.ConfigSet(background, "min-replicas-to-write", "0").Err())
}

package redislock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
)

func TestARenewalTellsALockThatDiedWithItsMaster(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	link := leasetest.NewProxy(t, master.Addr)
	replica := startReplica(t, link.Addr())
	front := leasetest.NewProxy(t, master.Addr) // the address of the master, whichever that is
	l := open(t, connect(t, front.Addr()), term(lease.DefaultLease)).Mutex("it")
	a, b := someone(), someone()
	link.Cut()
	h := hold(t, l, a)
	master.Kill()
	failOver(t, replica)
	rival := open(t, patient(t, replica.Addr)).Mutex("it")
	hold(t, rival, b)
	require.NoError(t, h.Err(), "the first one does not know")
	deadline, _ := h.Deadline()
	front.Lead(replica.Addr)
	<-h.Lost()
	require.True(t, time.Now().Before(deadline), "the renewal did not tell")
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestALookupWritesNothingUnlessReplicasAreAwaited(t *testing.T) {
	t.Parallel()
	s := startMaster(t)
	direct := connect(t, s.Addr)
	var stores []driver.Store
	c := open(t, direct, redislock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
		stores = append(stores, s)
		return s
	})))
	for name, kind := range anyKind {
		kind(c, name)
	}
	require.Len(t, stores, 6)
	req := func(i int) driver.Request {
		return driver.Request{HoldID: driver.HoldID{
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

package redislock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
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

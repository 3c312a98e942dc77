package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

func TestAnImpossibleWaitForReplicasIsRefused(t *testing.T) {
	c := connectFor(t, "127.0.0.1:1", 200*time.Millisecond)
	for _, opt := range []redislock.Option{
		redlock.WithReplicas(-1, time.Second), redlock.WithReplicas(1, 0), redlock.WithReplicas(1,
			200*time.Millisecond),
	} {
		_, err := redislock.New(c, opt)
		require.Error(t, err)
	}
}

// A lease is useless if most of its time is over when the reply comes.
func TestALookupAwaitsReplicasForHalfALease(t *testing.T) {
	t.Parallel()
	p := leasetest.NewProxy(t, startMaster(t).Addr)
	l := open(t, connectFor(t, p.Addr(), 2*time.Minute), term(time.Second), redlock.WithReplicas(1, time.Minute)).
		Mutex("it")
	ctx := someone()
	_, err := l.TryLockContext(ctx)
	require.ErrorIs(t, err, redlock.ErrNotReplicated)
	p.DropReply("evalsha", 1)
	began := time.Now()
	got := make(chan error, 1)
	go func() {
		_, err := l.TryLockContext(ctx)
		got <- err
	}()
	require.Eventually(t, func() bool { return p.Drops() == 1 }, hang, time.Millisecond)
	p.Reset()
	require.Error(t, <-got)
	require.Less(t, time.Since(began), hang)
}

func TestForceUnlockFreesALockWithReplicas(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	startReplica(t, master.Addr)
	acknowledged := redlock.WithReplicas(1, time.Second)
	l := open(t, patient(t, master.Addr), acknowledged).Mutex("it")
	other := open(t, patient(t, master.Addr), acknowledged).Mutex("it")
	ctx := someone()
	h := hold(t, l, ctx)

	freed, err := other.ForceUnlock(background)

	require.NoError(t, err)
	require.True(t, freed)
	<-h.Lost()
	require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
}

func TestCloseReleasesLocksWithReplicasTogether(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	startReplica(t, master.Addr)
	direct := patient(t, master.Addr)
	c, err := redislock.New(patient(t, master.Addr), redlock.WithReplicas(1, 4*time.Second))
	require.NoError(t, err)
	for i := range 30 {
		hold(t, c.Mutex(fmt.Sprint("it", i)), someone())
	}
	scripts := func() int { return suite.Commands(t, direct, "evalsha") + suite.Commands(t, direct, "eval") }
	before := scripts()
	require.NoError(t, c.Close(background))
	require.LessOrEqual(t, scripts()-before, 3)
}

package redislock_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/testbed"
	"github.com/jucgo/locks/distributed/redislock"
)

// startReplica starts a replica of the server at master, which is in step with it when this returns.
func startReplica(tb testing.TB, master string) *server {
	tb.Helper()
	host, port, _ := net.SplitHostPort(master)
	s := startServer(tb, "--replicaof", host+" "+port)
	linked(tb, s)
	return s
}

func linked(tb testing.TB, replica *server) {
	tb.Helper()
	c := patient(tb, replica.addr)
	require.Eventually(tb, func() bool {
		return strings.Contains(c.Info(context.Background(), "replication").Val(), "master_link_status:up")
	}, 20*time.Second, 5*time.Millisecond)
}

// startMaster starts a server that replicas join quickly.
func startMaster(tb testing.TB) *server {
	tb.Helper()
	return startServer(tb, "--repl-diskless-sync-delay", "0")
}

// failOver makes a replica the master.
func failOver(tb testing.TB, replica *server) {
	tb.Helper()
	require.NoError(tb, patient(tb, replica.addr).ReplicaOf(context.Background(), "NO", "ONE").Err())
}

// replicated has the clients of a test wait for one replica.
func replicated(d time.Duration) redislock.Option { return redislock.WithReplicas(1, d) }

func TestAWaitForReplicasThatCannotWorkIsRefused(t *testing.T) {
	c := connectFor(t, "127.0.0.1:1", 200*time.Millisecond)
	for _, opt := range []redislock.Option{
		redislock.WithReplicas(-1, time.Second), redislock.WithReplicas(1, 0), redislock.WithReplicas(1, 200*time.Millisecond),
	} {
		_, err := redislock.New(c, opt)
		require.Error(t, err)
	}
}

// patient is connect for a client that has time to wait for replicas.
func patient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 5 * time.Second, DialerRetries: 1, DisableIdentity: true})
	tb.Cleanup(func() { c.Close() })
	return c
}

func TestLocksThatReplicasAcknowledgeConform(t *testing.T) {
	master := startMaster(t)
	startReplica(t, master.addr)
	client := func(tb testing.TB) redis.UniversalClient { return patient(tb, master.addr) }
	conformOn(t, client, term(4*time.Second), replicated(2*time.Second))
}

func TestALockThatNoReplicaKnowsIsLostWithItsMasterAndTheHolderIsToldAtItsRenewal(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	link := testbed.NewProxy(t, master.addr)
	replica := startReplica(t, link.Addr())
	front := testbed.NewProxy(t, master.addr) // the address of the master, whichever that is
	l := open(t, connect(t, front.Addr()), term(3*time.Second)).Lock("it")
	a, b := someone(), someone()
	link.Cut()
	h := hold(t, l, a)
	master.Kill()
	failOver(t, replica)
	rival := open(t, patient(t, replica.addr)).Lock("it")
	hold(t, rival, b)
	require.NoError(t, h.Err(), "the first one does not know")
	front.Lead(replica.addr)
	select {
	case <-h.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("the renewal did not tell")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestALockThatNoReplicaAcknowledgesIsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	link := testbed.NewProxy(t, master.addr)
	replica := startReplica(t, link.Addr())
	direct := patient(t, master.addr)
	const limit = 300 * time.Millisecond
	for name, trouble := range map[string]struct{ do, undo func() }{
		"replica paused":  {func() { replica.Pause() }, func() { replica.Resume() }},
		"replication cut": {link.Cut, func() { link.Heal(); link.Reset(); linked(t, replica) }},
	} {
		for kindName, kind := range kinds {
			t.Run(name+"/"+kindName, func(t *testing.T) {
				l := kind.lock(open(t, patient(t, master.addr), replicated(limit)), kindName)
				a := someone()
				trouble.do()
				began := time.Now()
				ok, err := l.TryLockContext(a)
				took := time.Since(began)
				require.ErrorIs(t, err, redislock.ErrNotReplicated)
				require.False(t, ok)
				require.GreaterOrEqual(t, took, limit)
				require.Less(t, took, 10*limit)
				require.Zero(t, direct.Exists(background, kindName).Val())
				_, err = l.Hold(a)
				require.ErrorIs(t, err, locks.ErrNotHeld)

				ctx, cancel := context.WithTimeout(a, 2*limit)
				defer cancel()
				err = l.LockContext(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, redislock.ErrNotReplicated)
				require.Eventually(t, func() bool { return direct.Exists(background, kindName).Val() == 0 }, 5*time.Second, 10*time.Millisecond)

				got := make(chan error, 1)
				go func() { got <- l.LockContext(a) }()
				time.Sleep(limit)
				assert.Empty(t, got)
				trouble.undo()
				require.NoError(t, <-got, "it has tried again")
				require.NoError(t, l.UnlockContext(a))
			})
		}
	}
}

func TestALockThatAReplicaAcknowledgedSurvivesItsMaster(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	replica := startReplica(t, master.addr)
	front := testbed.NewProxy(t, master.addr)
	l := open(t, patient(t, front.Addr()), term(6*time.Second), replicated(time.Second)).Lock("it")
	a := someone()
	h := hold(t, l, a)
	master.Kill()
	failOver(t, replica)
	rival := open(t, patient(t, replica.addr)).Lock("it")
	ok, err := rival.TryLockContext(someone())
	require.NoError(t, err)
	require.False(t, ok)
	front.Lead(replica.addr)
	front.Reset()
	first, _ := h.Deadline()
	require.Eventually(t, func() bool { d, _ := h.Deadline(); return d.After(first) }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
	hold(t, rival, a)
	require.NoError(t, rival.UnlockContext(a))
}

func TestALostReplyOfAnAcknowledgedAcquisitionIsUndone(t *testing.T) {
	t.Parallel()
	master := startMaster(t)
	startReplica(t, master.addr)
	p := testbed.NewProxy(t, master.addr)
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), ReadTimeout: 500 * time.Millisecond, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	l := open(t, c, replicated(300*time.Millisecond)).Lock("it")
	a := someone()
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.DropReply("eval", 1)
	ok, err := l.TryLockContext(a)
	require.Error(t, err)
	require.False(t, ok)
	require.Equal(t, 1, p.Drops())
	require.Zero(t, connect(t, master.addr).Exists(background, "it").Val())
}

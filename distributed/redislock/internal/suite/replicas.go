package suite

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
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// StartReplica starts a replica of the server at master, which is in step with it when this
// returns.
func StartReplica(tb testing.TB, master string) *Server {
	tb.Helper()
	host, port, _ := net.SplitHostPort(master)
	s := StartServer(tb, "--replicaof", host+" "+port)
	Linked(tb, s)
	return s
}

// Linked waits until replica is in step with its master.
func Linked(tb testing.TB, replica *Server) {
	tb.Helper()
	c := Patient(tb, replica.Addr)
	require.Eventually(tb, func() bool {
		return strings.Contains(c.Info(context.Background(), "replication").Val(), "master_link_status:up")
	}, Hang, 5*time.Millisecond) // it may have to get all data anew, by its disk
}

// StartMaster starts a server that replicas join quickly.
func StartMaster(tb testing.TB) *Server {
	tb.Helper()
	return StartServer(tb, "--repl-diskless-sync-delay", "0")
}

// Patient is Connect for a client with time enough to wait for replicas.
func Patient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: reply, DialerRetries: 1,
		DisableIdentity: true})
	tb.Cleanup(func() { c.Close() })
	return c
}

// replicated makes the clients of a test wait for one replica.
func replicated(d time.Duration) redislock.Option { return redlock.WithReplicas(1, d) }

// mend heals the link of a replica, and waits until the replica is in step. The link's connections
// end first: a replica that misses a part of its stream must get all data anew.
func mend(tb testing.TB, link *leasetest.Proxy, replica *Server) {
	tb.Helper()
	link.Refuse()
	link.Heal()
	Linked(tb, replica)
}

// FailOver makes a replica the master.
func FailOver(tb testing.TB, replica *Server) {
	tb.Helper()
	require.NoError(tb, Patient(tb, replica.Addr).ReplicaOf(context.Background(), "NO", "ONE").Err())
}

func LocksThatReplicasAcknowledgeConform(t *testing.T, on Driver) {
	master := StartMaster(t)
	StartReplica(t, master.Addr)
	conformOn(t, on, Connect(t, master.Addr), func(tb testing.TB, opts ...redislock.Option) *redislock.Client {
		return on.Open(tb, master.Addr, append(opts, replicated(reply/2))...)
	})
}

func ALockThatNoReplicaAcknowledgesIsRefusedAndLeavesNothing(t *testing.T, on Driver) {
	t.Parallel()
	master := StartMaster(t)
	link := leasetest.NewProxy(t, master.Addr)
	replica := StartReplica(t, link.Addr())
	direct := Patient(t, master.Addr)
	const limit = 300 * time.Millisecond
	for name, trouble := range map[string]struct {
		do   func()
		undo func(t *testing.T)
	}{
		"replica paused":  {replica.Pause, func(*testing.T) { replica.Resume() }},
		"replication cut": {link.Cut, func(t *testing.T) { mend(t, link, replica) }},
	} {
		for kindName, kind := range Kinds {
			t.Run(name+"/"+kindName, func(t *testing.T) {
				l := kind(on.Server(t, master.Addr, 2*Hang, replicated(limit)), kindName)
				a := Someone()
				trouble.do()
				began := time.Now()
				ok, err := l.TryLockContext(a)
				took := time.Since(began)
				require.ErrorIs(t, err, redlock.ErrNotReplicated)
				require.False(t, ok)
				require.GreaterOrEqual(t, took, limit)
				require.Less(t, took, Hang)
				require.Zero(t, direct.Exists(Background, kindName).Val())
				_, err = l.Hold(a)
				require.ErrorIs(t, err, locks.ErrNotHeld)

				// The acquisition is given up after its second request, so its first request was
				// refused.
				asked := func() int { return Commands(t, direct, "evalsha") + Commands(t, direct, "eval") }
				ctx, cancel := context.WithCancel(a)
				defer cancel()
				got, before := make(chan error, 1), asked()
				go func() { got <- l.LockContext(ctx) }()
				require.Eventually(t, func() bool { return asked() >= before+3 }, Hang, 10*time.Millisecond,
					"it takes the lock, releases it, and takes it again")
				cancel()
				err = <-got
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, redlock.ErrNotReplicated)
				require.Eventually(t, func() bool { return direct.Exists(Background, kindName).Val() == 0 },
					Hang, 10*time.Millisecond)

				go func() { got <- l.LockContext(a) }()
				time.Sleep(limit)
				assert.Empty(t, got)
				trouble.undo(t)
				require.NoError(t, <-got, "it has tried again")
				require.NoError(t, l.UnlockContext(a))
			})
		}
	}
}

func AnAcknowledgedLockSurvivesItsMaster(t *testing.T, on Driver) {
	t.Parallel()
	master := StartMaster(t)
	replica := StartReplica(t, master.Addr)
	front := leasetest.NewProxy(t, master.Addr)
	l := on.Open(t, front.Addr(), Term(lease.DefaultLease), replicated(reply/2)).Mutex("it")
	a := Someone()
	h := Hold(t, l, a)
	master.Kill()
	FailOver(t, replica)
	rival := on.Open(t, replica.Addr).Mutex("it")
	ok, err := rival.TryLockContext(Someone())
	require.NoError(t, err)
	require.False(t, ok)
	front.Lead(replica.Addr)
	front.Reset()
	first, _ := h.Deadline()
	require.Eventually(t, func() bool { d, _ := h.Deadline(); return d.After(first) }, Hang,
		10*time.Millisecond)
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
	Hold(t, rival, a)
	require.NoError(t, rival.UnlockContext(a))
}

func WhoGaveALockBackThatNoReplicaAcknowledgedHearsOfTheNextRelease(t *testing.T, on Driver) {
	t.Parallel()
	master := StartMaster(t)
	link := leasetest.NewProxy(t, master.Addr)
	replica := StartReplica(t, link.Addr())
	direct := Patient(t, master.Addr)
	waiting := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return direct.LLen(Background, "locks_waiting:{it}").Val() == n }, Hang,
			time.Millisecond)
	}
	holder, l := on.Open(t, master.Addr, Rarely).Mutex("it"), on.Open(t, master.Addr, Rarely,
		replicated(200*time.Millisecond)).Mutex("it")
	a, b := Someone(), Someone()
	Hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	waiting(1)
	link.Cut()
	require.NoError(t, holder.UnlockContext(a))
	require.Eventually(t, func() bool { return direct.Exists(Background, "it").Val() > 0 }, Hang, time.Millisecond)
	require.NoError(t, holder.LockContext(a), "it was given back")
	waiting(1)
	mend(t, link, replica)
	require.NoError(t, holder.UnlockContext(a))
	select {
	case err := <-got:
		require.NoError(t, err)
	case <-time.After(Hang):
		t.Fatal("it sleeps though the lock is free")
	}
	require.NoError(t, l.UnlockContext(b))
}

func ALostReplyOfAnAcquisitionIsAskedForWithItsAcknowledgement(t *testing.T, on Driver) {
	t.Parallel()
	for _, name := range []string{"plain", "read"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := StartMaster(t)
			replica := StartReplica(t, master.Addr)
			p := leasetest.NewProxy(t, master.Addr)
			direct := Connect(t, master.Addr)
			l := AllKinds[name](on.Open(t, p.Addr(), replicated(reply/2)), name)
			a := Someone()
			require.NoError(t, l.LockContext(a))
			require.NoError(t, l.UnlockContext(a))
			p.ResetReply(on.Eval, 1)
			ok, err := l.TryLockContext(a)
			require.NoError(t, err)
			require.True(t, ok, "the replica has it")
			require.EqualValues(t, 1, direct.Exists(Background, name).Val())
			require.NoError(t, l.UnlockContext(a))

			c := on.Open(t, p.Addr(), replicated(500*time.Millisecond))
			l = AllKinds[name](c, name)
			replica.Pause()
			p.ResetReply(on.Eval, 1)
			ok, err = l.TryLockContext(a)
			require.Error(t, err)
			require.False(t, ok)
			require.Zero(t, direct.Exists(Background, name).Val(), "it is undone")
			replica.Resume()
			require.Equal(t, 2, p.Drops())
			// The client does not know that the request whose reply is lost cannot come again.
			require.ErrorContains(t, c.Close(Background), "close: acquisitions in doubt: 1; ")
		})
	}
}

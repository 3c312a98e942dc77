package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// often makes waiters ask again soon.
var often = redislock.WithLeaseOptions(lease.WithPoll(200 * time.Millisecond))

func TestAWrongAddressIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	c := open(t, connect(t, "127.0.0.1:1"))
	for _, lock := range anyKind {
		began := time.Now()
		var op *net.OpError
		require.ErrorAs(t, lock(c, "it").LockContext(someone()), &op)
		_, err := lock(c, "it").TryLockContext(someone())
		require.ErrorAs(t, err, &op)
		require.Less(t, time.Since(began), hang)
	}
}

func TestAWaiterOutlastsAnUnreachableServer(t *testing.T) {
	t.Parallel()
	for kind, lock := range anyKind {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			p := leasetest.NewProxy(t, s.Addr)
			direct := connect(t, s.Addr)
			holder := lock(open(t, connect(t, s.Addr)), "it")
			c := open(t, connectFor(t, p.Addr(), 3*time.Second))
			a, b := someone(), someone()
			require.NoError(t, holder.LockContext(a))
			got := make(chan error, 1)
			go func() { got <- lock(c, "it").LockContext(b) }()
			ctx, cancel := context.WithCancelCause(someone())
			other := make(chan error, 1)
			go func() { other <- lock(c, "it").LockContext(ctx) }()
			require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, hang,
				time.Millisecond)
			p.Refuse()
			direct.Publish(background, "redisson_lock__channel:{it}", "0")
			time.Sleep(2 * time.Second) // it asks meanwhile
			require.Empty(t, got)
			gone := errors.New("gone")
			cancel(gone)
			require.ErrorIs(t, <-other, gone)
			require.NoError(t, holder.UnlockContext(a))
			p.Heal()
			select {
			case err := <-got:
				require.NoError(t, err)
			case <-time.After(hang):
				t.Fatal("it does not go on")
			}
			require.NoError(t, lock(c, "it").UnlockContext(b))
		})
	}
}

// unanswered is a hook that tells of each script that gets no answer of the server.
type unanswered chan struct{}

func (unanswered) DialHook(next redis.DialHook) redis.DialHook { return next }

func (unanswered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c unanswered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		var answer redis.Error
		if err != nil && strings.HasPrefix(cmd.Name(), "eval") && !errors.As(err, &answer) {
			c <- struct{}{}
		}
		return err
	}
}

// await waits for n scripts without an answer.
func (c unanswered) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-c:
		case <-time.After(hang):
			t.Fatal("no request fails")
		}
	}
}

func TestAWaiterReportsWhyAServerWasUnreachable(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	direct := connect(t, s.Addr)
	direct.HSet(background, "it", "java:1", 1)
	conn, failed := connectFor(t, p.Addr(), 2*time.Second), make(unanswered, 1000)
	conn.AddHook(failed)
	l := open(t, conn, often, suite.Brief).Mutex("it")
	ctx, cancel := context.WithCancel(someone())
	defer cancel()
	got := make(chan error, 1)
	go func() { got <- l.LockContext(ctx) }()
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, hang, time.Millisecond)
	s.Kill()
	failed.await(t, 6) // of several acquisitions, whose errors the waiter knows
	cancel()
	err := <-got
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "could not be reached")
}

func TestNobodyWaitsForAUsersClosedClient(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	a := someone()
	require.NoError(t, open(t, connect(t, s.Addr())).Mutex("it").LockContext(a))
	conn := connect(t, s.Addr())
	l := open(t, conn, often, suite.Brief).Mutex("it")
	got := make(chan error, 1)
	go func() { got <- l.LockContext(someone()) }()
	require.Eventually(t, func() bool { return len(s.PubSubChannels("redisson_lock__channel:*")) == 1 },
		hang, time.Millisecond)
	conn.Close()
	require.ErrorIs(t, <-got, redis.ErrClosed)
}

func TestWaitersAwaitATemporarilyUnavailableServer(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	holder, l := open(t, connect(t, s.Addr())).Mutex("it"), open(t, connect(t, s.Addr())).Mutex("it")
	a, b := someone(), someone()
	require.NoError(t, holder.LockContext(a))
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(s.PubSubChannels("redisson_lock__channel:*")) == 1 },
		hang, time.Millisecond)
	s.Publish("redisson_lock__channel:{it}", "0")
	// A real server refuses requests as a whole. The server of this test would also refuse the
	// calls of a running script.
	for done := -1; done != s.CommandCount(); time.Sleep(100 * time.Millisecond) {
		done = s.CommandCount()
	}
	s.SetError("LOADING Redis is loading the dataset in memory")
	s.Publish("redisson_lock__channel:{it}", "0")
	select {
	case err := <-got:
		t.Fatal(err)
	case <-time.After(200 * time.Millisecond):
	}
	_, err := open(t, connect(t, s.Addr())).Mutex("it").TryLockContext(someone())
	require.ErrorIs(t, err, lease.ErrUnavailable)
	s.SetError("")
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, l.UnlockContext(b))
}

func TestAClusterNeedsAClientOfTheCluster(t *testing.T) {
	t.Parallel()
	nodes := suite.StartNodes(t)
	addr := nodes[0].Addr
	wrapped := open(t, struct{ redis.UniversalClient }{suite.Cluster(t, []string{addr})})
	one := open(t, connect(t, addr))
	for kind, lock := range anyKind {
		err := lock(wrapped, kind).LockContext(someone())
		require.ErrorContains(t, err, "a struct { redis.UniversalClient } is refused")
		elsewhere := 0
		for i := range 20 {
			if err := lock(one, fmt.Sprint(kind, i)).LockContext(someone()); err != nil {
				require.ErrorIs(t, err, redisport.ErrCluster)
				require.NotErrorIs(t, err, lease.ErrUnavailable)
				elsewhere++
			}
		}
		require.Positive(t, elsewhere)
	}
}

func TestAOneServerClientsWrapperIsAClient(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, _ *redis.Client, addr string) {
		l, a := open(t, struct{ redis.UniversalClient }{connect(t, addr)}).Mutex("it"), someone()
		hold(t, l, a)
		require.NoError(t, l.UnlockContext(a))
	})
}

package onrueidis_test

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
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
	"github.com/jucgo/locks/distributed/redislock/onrueidis"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

func single(tb testing.TB, addr string) rueidis.Client {
	tb.Helper()
	return connect(tb, option(suite.Hang, addr))
}

func TestNoClientAndOneClientTwiceAreRefused(t *testing.T) {
	t.Parallel()
	_, err := onrueidis.New(nil)
	require.ErrorContains(t, err, "nil client")
	_, err = onrueidis.NewGate(nil)
	require.ErrorContains(t, err, "nil client")
	c := single(t, miniredis.RunT(t).Addr())
	_, err = onrueidis.NewRedlock([]rueidis.Client{c, nil})
	require.ErrorContains(t, err, "nil client")
	_, err = onrueidis.NewRedlock([]rueidis.Client{c, c})
	require.ErrorContains(t, err, "twice")
	_, err = onrueidis.NewRedlock(nil)
	require.ErrorContains(t, err, "no servers")
	_, err = onrueidis.New(c, redislock.WithFairWait(0))
	require.Error(t, err)
}

func TestNobodyWaitsForAUsersClosedClient(t *testing.T) {
	t.Parallel()
	s := suite.StartServer(t)
	require.NoError(t, open(t, single(t, s.Addr)).Mutex("it").LockContext(suite.Someone()))
	conn := single(t, s.Addr)
	l := open(t, conn, suite.Brief, redislock.WithLeaseOptions(lease.WithPoll(200*time.Millisecond))).Mutex("it")
	got := make(chan error, 1)
	go func() { got <- l.LockContext(suite.Someone()) }()
	direct := suite.Connect(t, s.Addr)
	require.Eventually(t, func() bool { return len(suite.Subscriptions(direct)) == 1 }, suite.Hang, time.Millisecond)
	conn.Close()
	require.ErrorIs(t, <-got, rueidis.ErrClosing)
}

func TestAnAbsentServerFailsOnlyNewCallers(t *testing.T) {
	t.Parallel()
	s := suite.StartServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	direct := suite.Connect(t, s.Addr)
	brief := suite.Term(lease.DefaultLease) // after which the waiter asks again
	holder, l := open(t, single(t, s.Addr), brief).Mutex("it"), open(t, single(t, p.Addr()), brief)
	a, b := suite.Someone(), suite.Someone()
	suite.Hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.Mutex("it").LockContext(b) }()
	require.Eventually(t, func() bool { return len(suite.Subscriptions(direct)) == 1 }, suite.Hang, time.Millisecond)
	s.Kill()
	require.Eventually(t, func() bool {
		var op *net.OpError
		_, err := l.Mutex("other").TryLockContext(suite.Someone())
		return errors.As(err, &op) || errors.Is(err, lease.ErrUnavailable)
	}, suite.Hang, time.Millisecond)
	require.Empty(t, got)
	s.Restart(t) // without the lock
	require.NoError(t, <-got)
	require.NoError(t, l.Mutex("it").UnlockContext(b))
	holder.UnlockContext(a)
}

// A client whose connections live for a short time only sends requests again that were on one
// when its time was over.
func TestNoRequestIsRepeatedAfterItsConnectionsTime(t *testing.T) {
	t.Parallel()
	s := suite.StartServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	o := option(10*time.Second, p.Addr())
	o.ConnLifetime = 300 * time.Millisecond
	l := open(t, connect(t, o)).FencedMutex("it")
	a := suite.Someone()
	direct := suite.Connect(t, s.Addr)
	h := suite.Hold(t, l, a)
	counted := suite.Commands(t, direct, "getset")
	require.NoError(t, l.UnlockContext(a))
	p.Delay(1500 * time.Millisecond)
	require.Greater(t, suite.Hold(t, l, a).Token(), h.Token())
	p.Heal()
	require.Equal(t, counted+1, suite.Commands(t, direct, "getset"), "each request that takes the lock counts")
	require.NoError(t, l.UnlockContext(a))
}

func TestRequestsWaitForTheirTurnOnly(t *testing.T) {
	t.Parallel()
	s := suite.StartServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	c := open(t, single(t, p.Addr()))
	const n = 200
	results := make(chan error, n)
	for i := range n {
		go func() {
			a := suite.Someone()
			err := c.Mutex(fmt.Sprint("it", i)).LockContext(a)
			if err == nil {
				err = c.Mutex(fmt.Sprint("it", i)).UnlockContext(a)
			}
			results <- err
		}()
	}
	for range n {
		require.NoError(t, <-results)
	}
	list := suite.Connect(t, s.Addr).ClientList(context.Background()).Val()
	require.Less(t, strings.Count(list, "\n"), n, "connections are shared")
}

func TestAGateRefusesStaleTokens(t *testing.T) {
	t.Parallel()
	suite.Servers(t, func(t *testing.T, _ *redis.Client, addr string) {
		g, err := onrueidis.NewGate(single(t, addr))
		require.NoError(t, err)
		ctx := context.Background()
		require.NoError(t, g.Set(ctx, "it", 2, "x"))
		require.ErrorIs(t, g.Set(ctx, "it", 1, "y"), fence.ErrStale)
		require.NoError(t, g.Check(ctx, "it", 2))
	})
}

func TestRedlockIsHeldWhileAMajorityOfItsServersAnswers(t *testing.T) {
	t.Parallel()
	var clients []rueidis.Client
	var servers []*suite.Server
	for range 3 {
		s := suite.StartServer(t)
		servers = append(servers, s)
		clients = append(clients, single(t, s.Addr))
	}
	m, err := onrueidis.NewRedlock(clients, redislock.WithTTL(suite.Long), redlock.WithNodeTimeout(5*time.Second))
	require.NoError(t, err)
	defer m.Close(context.Background())
	a := suite.Someone()
	servers[0].Pause()
	h := suite.Hold(t, m.Mutex("it"), a)
	suite.Renewed(t, h)
	servers[1].Pause()
	<-h.Lost()
	require.ErrorIs(t, m.Mutex("it").UnlockContext(a), locks.ErrLost)
	servers[0].Resume()
	servers[1].Resume()
	adaptertest.Patiently(t, m.Mutex("it"), a)
	require.NoError(t, m.Mutex("it").UnlockContext(a))
}

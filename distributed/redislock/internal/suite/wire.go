package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// Servers runs f on both kinds of server.
func Servers(t *testing.T, f func(t *testing.T, direct *redis.Client, addr string)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		addr := miniredis.RunT(t).Addr()
		f(t, Connect(t, addr), addr)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		addr := Addr(t)
		f(t, Connect(t, addr), addr)
	})
}

// StartCluster runs a cluster of one server.
func StartCluster(t *testing.T) (*Server, *redis.ClusterClient) {
	s := startMember(t)
	direct := Patient(t, s.Addr)
	require.NoError(t, direct.ClusterAddSlotsRange(Background, 0, 16383).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(direct.ClusterInfo(Background).Val(), "cluster_state:ok")
	}, Hang, 10*time.Millisecond)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return s, c
}

func LocksOfAClusterWakeThoseWhoWaitByEitherKindOfChannel(t *testing.T, on Driver) {
	t.Parallel()
	s, _ := StartCluster(t)
	direct := Connect(t, s.Addr)
	for name, pubsub := range map[string]redislock.PubSub{
		"auto": redislock.Auto, "classic": redislock.Classic, "sharded": redislock.Sharded, "both": redislock.Both,
	} {
		t.Run(name, func(t *testing.T) {
			by := redislock.WithPubSub(pubsub)
			c, d := on.across(t, []*Server{s}, by), on.across(t, []*Server{s}, by, Rarely)
			for _, n := range []string{"it", "a{b}c"} {
				l, m := c.FencedMutex(n), d.FencedMutex(n)
				a, b := Someone(), Someone()
				Hold(t, l, a)
				got := make(chan error, 1)
				go func() { got <- m.LockContext(b) }()
				require.Eventually(t, func() bool {
					classic, sharded := len(Subscriptions(direct)), len(ShardSubscriptions(direct))
					return classic == btoi(name == "classic" || name == "both") && sharded == btoi(name != "classic")
				}, Hang, time.Millisecond)
				began := time.Now()
				require.NoError(t, l.UnlockContext(a))
				require.NoError(t, <-got)
				require.Less(t, time.Since(began), Hang)
				require.NoError(t, m.UnlockContext(b))
				require.Eventually(t, func() bool { return len(Subscriptions(direct)) == 0 }, Hang,
					time.Millisecond)
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func ManyHoldsOfAClusterAreRenewed(t *testing.T, on Driver) {
	t.Parallel()
	s, _ := StartCluster(t)
	c := on.across(t, []*Server{s}, Term(Long))
	a := Someone()
	var holds []locks.Hold
	began := time.Now()
	for i := range 50 {
		holds = append(holds, Hold(t, c.Mutex(fmt.Sprint("it", i)), a))
	}
	for _, h := range holds {
		require.Eventually(t, func() bool {
			deadline, _ := h.Deadline()
			return deadline.Sub(began) > Long
		}, Hang, 5*time.Millisecond)
		require.NoError(t, h.Err())
	}
}

func AClusterHasReadWriteAndFairLocks(t *testing.T, on Driver) {
	t.Parallel()
	s, _ := StartCluster(t)
	c, d := on.across(t, []*Server{s}, Term(Long)), on.across(t, []*Server{s}, Term(Long))
	for _, name := range []string{"it", "a{b}c"} {
		l, m := c.RWMutex(name), d.RWMutex(name)
		for _, pair := range [][2]locks.TryLocker{
			{l.ReadLocker(), m.WriteLocker()}, {l.WriteLocker(), m.ReadLocker()}, {c.FairMutex("fair" + name),
				d.FairMutex("fair" + name)},
		} {
			a, b := Someone(), Someone()
			h := Hold(t, pair[0].(*lease.Mutex), a)
			got := make(chan error, 1)
			go func() { got <- pair[1].LockContext(b) }()
			Renewed(t, h)
			require.Empty(t, got)
			began := time.Now()
			require.NoError(t, pair[0].UnlockContext(a))
			require.NoError(t, <-got)
			require.Less(t, time.Since(began), Hang, "woken")
			require.NoError(t, pair[1].UnlockContext(b))
		}
	}
}

func OneConnectionHearsOfAllLocks(t *testing.T, on Driver) {
	t.Parallel()
	addr := Addr(t)
	direct := Connect(t, addr)
	holder, c := on.Open(t, addr), on.Open(t, addr)
	a := Someone()
	const n = 50
	got := make(chan error, n)
	for i := range n {
		require.NoError(t, holder.Mutex(fmt.Sprint("it", i)).LockContext(a))
		go func() {
			b := Someone()
			err := c.Mutex(fmt.Sprint("it", i)).LockContext(b)
			if err == nil {
				err = c.Mutex(fmt.Sprint("it", i)).UnlockContext(b)
			}
			got <- err
		}()
	}
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == n }, Hang, time.Millisecond)
	subscribers := direct.Do(Background, "client", "list", "type", "pubsub").String()
	require.Equal(t, 2, strings.Count(subscribers, " addr="), "one of the waiters, and one of the holder")
	for i := range n {
		require.NoError(t, holder.Mutex(fmt.Sprint("it", i)).UnlockContext(a))
	}
	for range n {
		require.NoError(t, <-got)
	}
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == 0 }, Hang, time.Millisecond)
}

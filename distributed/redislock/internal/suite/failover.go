package suite

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// A tenure is the time for which a client believed to hold the lock: from its grant to the call of
// the release, or until it was told of a loss.
type tenure struct {
	client     int
	name       string
	began, end time.Time
}

// failovers has clients hold a few locks in turn while the sentinels of a master and two replicas
// make planned failovers, and returns their tenures. Each client has connections and a sentinel of
// its own, and hears of a new master by itself, like a process. The settings are those of all
// servers.
func failovers(t *testing.T, on Driver, n int, settings map[string]string, opts ...redislock.Option) []tenure {
	t.Helper()
	const clients, names, split = 6, 20, 6 * time.Second
	master := StartMaster(t)
	servers := []*Server{master, StartReplica(t, master.Addr), StartReplica(t, master.Addr)}
	var addrs []string
	for range 3 {
		addrs = append(addrs, startSentinel(t, master, 2, calm))
	}
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addrs[0], DisableIdentity: true})
	defer sentinel.Close()
	require.Eventually(t, func() bool {
		others, err := sentinel.Sentinels(Background, "it").Result()
		return err == nil && len(others) == 2
	}, time.Minute, 20*time.Millisecond, "the sentinels know each other")
	for _, s := range servers {
		for name, value := range settings {
			require.NoError(t, Patient(t, s.Addr).ConfigSet(Background, name, value).Err())
		}
	}
	var mu sync.Mutex
	var all []tenure
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range clients {
		c := on.sentinel(t, addrs[i%len(addrs)], append(opts, Term(9*time.Second))...)
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, name := Someone(), fmt.Sprint("it", rand.IntN(names))
				l := c.Mutex(name)
				if ok, err := l.TryLockContext(a); !ok || err != nil { // perhaps a master that is replaced
					time.Sleep(time.Millisecond)
					continue
				}
				own := tenure{client: i, name: name, began: time.Now()}
				if hold, err := l.Hold(a); err == nil {
					select {
					case <-hold.Lost():
					case <-time.After(5 * time.Millisecond):
					}
				}
				own.end = time.Now()
				_ = l.UnlockContext(a)
				mu.Lock()
				all = append(all, own)
				mu.Unlock()
			}
		})
	}
	of := func() string {
		at, err := sentinel.GetMasterAddrByName(Background, "it").Result()
		require.NoError(t, err)
		return net.JoinHostPort(at[0], at[1])
	}
	for range n {
		old := of()
		require.Eventually(t, func() bool { return sentinel.Failover(Background, "it").Err() == nil }, 60*time.Second,
			20*time.Millisecond)
		require.Eventually(t, func() bool { return of() != old }, 60*time.Second, 5*time.Millisecond)
		time.Sleep(split) // each client has moved to the new master then
	}
	close(stop)
	running.Wait()
	return all
}

// overlaps returns how many pairs of tenures of two clients overlap, and the longest time of one.
func overlaps(all []tenure) (pairs int, longest time.Duration) {
	slices.SortFunc(all, func(a, b tenure) int { return cmp.Compare(a.began.UnixNano(), b.began.UnixNano()) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !b.began.Before(a.end) {
				break
			}
			if a.client != b.client && a.name == b.name {
				pairs++
				longest = max(longest, min(a.end.Sub(b.began), b.end.Sub(b.began)))
			}
		}
	}
	return pairs, longest
}

// settled are settings with which at most one of two masters accepts writes: each of them needs a
// replica, and the two masters of three servers have one replica together.
var settled = map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "2"}

func PlannedFailoversLeaveOneHolder(t *testing.T, on Driver) {
	acknowledged := redlock.WithReplicas(1, time.Second)
	for _, c := range []struct {
		name     string
		safe     bool
		settings map[string]string
		opts     []redislock.Option
	}{
		{"without the option", false, nil, nil}, // so that the test would see two holders
		{"WithReplicas", true, nil, []redislock.Option{acknowledged}},
		{"min-replicas-to-write", true, settled, nil},
		{"both", true, settled, []redislock.Option{acknowledged}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := failovers(t, on, 3, c.settings, c.opts...)
			pairs, longest := overlaps(all)
			t.Logf("%d holds, %d overlapping pairs, the longest for %v", len(all), pairs, longest)
			require.NotEmpty(t, all)
			require.Equal(t, c.safe, pairs == 0, "%d pairs", pairs)
		})
	}
}

package suite

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// A tenure is the time for which a process believed to hold the lock. It lasts from the grant to
// the call of the release, or until the process was told of a loss.
type tenure struct {
	process    int
	name       string
	began, end time.Time
}

// HoldInTurn is the role of a process that holds a few locks in turn, until it reads a line. It
// finds the master by the sentinel at args[0]. With args[1] it waits for as many replicas. It
// prints a line after its first tenure, and all its tenures at the end.
func HoldInTurn(args []string) error {
	const names = 20
	opts := []redislock.Option{redislock.WithLeaseOptions(adaptertest.Patient), Term(9 * time.Second)}
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		opts = append(opts, redlock.WithReplicas(n, time.Second))
	}
	conn := redis.NewFailoverClient(failoverOptions(Way{Addrs: args[:1], Reply: reply}))
	defer conn.Close()
	c, err := redislock.New(conn, opts...)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		fmt.Scanln()
	}()
	var all []tenure
	for {
		select {
		case <-stop:
			for _, own := range all {
				fmt.Println(own.name, own.began.UnixNano(), own.end.UnixNano())
			}
			fmt.Println("end")
			return c.Close(Background)
		default:
		}
		a, name := Someone(), fmt.Sprint("it", rand.IntN(names))
		l := c.Mutex(name)
		if ok, err := l.TryLockContext(a); !ok || err != nil { // perhaps a master that is replaced
			time.Sleep(time.Millisecond)
			continue
		}
		own := tenure{name: name, began: time.Now()}
		if hold, err := l.Hold(a); err == nil {
			select {
			case <-hold.Lost():
			case <-time.After(5 * time.Millisecond):
			}
		}
		own.end = time.Now()
		_ = l.UnlockContext(a)
		if all = append(all, own); len(all) == 1 {
			fmt.Println("held")
		}
	}
}

// failovers starts processes in the role, which hold a few locks in turn while the sentinels of a
// master and two replicas make planned failovers. It returns the tenures of the processes. Each
// process has a sentinel of its own, and hears of a new master by itself. The settings are for all
// servers.
func failovers(t *testing.T, role string, n int, settings map[string]string, args ...string) (all []tenure) {
	t.Helper()
	const processes, split = 6, 6 * time.Second
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
	}, Hang, 20*time.Millisecond, "the sentinels know each other")
	for _, s := range servers {
		for name, value := range settings {
			require.NoError(t, Patient(t, s.Addr).ConfigSet(Background, name, value).Err())
		}
	}
	var holders []*testbed.Process
	for i := range processes {
		holders = append(holders, testbed.Child(t, role, append([]string{addrs[i%len(addrs)]}, args...)...))
	}
	for _, p := range holders {
		require.Equal(t, "held", p.Line())
	}
	of := func() string {
		at, err := sentinel.GetMasterAddrByName(Background, "it").Result()
		require.NoError(t, err)
		return net.JoinHostPort(at[0], at[1])
	}
	for range n {
		old := of()
		require.Eventually(t, func() bool { return sentinel.Failover(Background, "it").Err() == nil }, Hang,
			20*time.Millisecond)
		require.Eventually(t, func() bool { return of() != old }, Hang, 5*time.Millisecond)
		time.Sleep(split) // each process has moved to the new master then
	}
	for i, p := range holders {
		p.Say("stop")
		for line := p.Line(); line != "end"; line = p.Line() {
			var began, end int64
			own := tenure{process: i}
			_, err := fmt.Sscan(line, &own.name, &began, &end)
			require.NoError(t, err, line)
			own.began, own.end = time.Unix(0, began), time.Unix(0, end)
			all = append(all, own)
		}
	}
	return all
}

// overlaps returns how many pairs of tenures of two processes overlap, and the longest time of one.
func overlaps(all []tenure) (pairs int, longest time.Duration) {
	slices.SortFunc(all, func(a, b tenure) int { return cmp.Compare(a.began.UnixNano(), b.began.UnixNano()) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !b.began.Before(a.end) {
				break
			}
			if a.process != b.process && a.name == b.name {
				pairs++
				longest = max(longest, min(a.end.Sub(b.began), b.end.Sub(b.began)))
			}
		}
	}
	return pairs, longest
}

// settled are settings with which at most one of two masters accepts writes. Each master needs a
// replica, and the two masters of three servers share one replica.
var settled = map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "2"}

// PlannedFailoversLeaveOneHolder has processes in a role, which plays [HoldInTurn].
func PlannedFailoversLeaveOneHolder(t *testing.T, role string) {
	for _, c := range []struct {
		name     string
		safe     bool
		settings map[string]string
		args     []string
	}{
		{"without the option", false, nil, nil}, // so that the test would see two holders
		{"WithReplicas", true, nil, []string{"1"}},
		{"min-replicas-to-write", true, settled, nil},
		{"both", true, settled, []string{"1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := failovers(t, role, 3, c.settings, c.args...)
			pairs, longest := overlaps(all)
			t.Logf("%d holds, %d overlapping pairs, the longest for %v", len(all), pairs, longest)
			require.NotEmpty(t, all)
			require.Equal(t, c.safe, pairs == 0, "%d pairs", pairs)
		})
	}
}

package redlock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

func TestCloseReleasesAThousandHoldsInTenScriptsForEachServer(t *testing.T) {
	m, link := startMasters(t), leasetest.NewLink(t)
	var cs []redis.UniversalClient
	for _, s := range m {
		c := redis.NewClient(&redis.Options{
			Addr: s.Addr, Dialer: link.DialContext, MaxRetries: -1, PoolSize: 32, DisableIdentity: true,
		})
		t.Cleanup(func() { c.Close() })
		cs = append(cs, c)
	}
	c, err := redlock.New(cs, term(10*time.Minute), redlock.WithNodeTimeout(10*time.Second))
	require.NoError(t, err)
	const n = 1000
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			a := someone()
			for i := w; i < n; i += 16 {
				if err := c.Mutex(fmt.Sprint("it", i)).LockContext(a); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	locksOf := func(s *server) int { return len(connect(t, s.Addr).Keys(background, "it*").Val()) }
	for _, s := range m { // a majority is enough for an acquisition
		require.Eventually(t, func() bool { return locksOf(s) == n }, hang, time.Millisecond)
	}
	scripts := func() (sent int) {
		for _, s := range m {
			direct := connect(t, s.Addr)
			sent += commands(t, direct, "evalsha") + commands(t, direct, "eval")
		}
		return sent
	}
	before := scripts()
	link.Delay(40 * time.Millisecond)
	began := time.Now()
	require.NoError(t, c.Close(background))
	t.Logf("closed in %v", time.Since(began))
	link.Delay(0)
	require.LessOrEqual(t, scripts()-before, members*(n/100+1))
	for _, s := range m {
		require.Zero(t, locksOf(s))
	}
}

// Of five servers, one refuses the first releases, and one refuses all.
func TestCloseOfManyHoldsNeedsAMajorityOnly(t *testing.T) {
	t.Parallel()
	servers, addrs := make([]*miniredis.Miniredis, members), make([]string, members)
	for i := range servers {
		servers[i] = miniredis.RunT(t)
		addrs[i] = servers[i].Addr()
	}
	c := openMajority(t, addrs, term(10*time.Minute))
	a := someone()
	const n = 250
	for i := range n {
		require.NoError(t, c.Mutex(fmt.Sprint("it", i)).LockContext(a))
	}
	locksOf := func(s *miniredis.Miniredis) (n int) {
		for _, key := range s.Keys() {
			if strings.HasPrefix(key, "it") {
				n++
			}
		}
		return n
	}
	for _, s := range servers { // a majority is enough for an acquisition
		require.Eventually(t, func() bool { return locksOf(s) == n }, hang, time.Millisecond)
	}
	servers[0].SetError("BUSY of the test")
	servers[1].SetError("BUSY of the test")
	time.AfterFunc(300*time.Millisecond, func() { servers[1].SetError("") })
	require.NoError(t, c.Close(background))
	for _, s := range servers[1:] {
		require.Zero(t, locksOf(s))
	}
	require.Equal(t, n, locksOf(servers[0]))
}

package redislock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// cohort has n owners of one process take a lock one after the other, and returns how often it was taken from the server. A rival in
// another process, if there is one, begins to wait before all but the first of them are through.
func cohort(t *testing.T, addr string, n int, rival bool) int {
	l := open(t, connect(t, addr), redislock.WithLeaseOptions(lease.WithMaxLocalHandoffs(1))).FencedMutex("it")
	a := someone()
	first := hold(t, l, a).Token()
	var wg sync.WaitGroup
	for range n - 1 {
		wg.Go(func() {
			b := someone()
			assert.NoError(t, l.LockContext(b))
			time.Sleep(time.Millisecond)
			assert.NoError(t, l.UnlockContext(b))
		})
	}
	require.Eventually(t, func() bool { return l.QueueLength() == n-1 }, 10*time.Second, time.Millisecond)
	other := open(t, connect(t, addr)).FencedMutex("it")
	if rival {
		wg.Go(func() {
			b := someone()
			assert.NoError(t, other.LockContext(b))
			assert.Positive(t, l.QueueLength(), "those here are not all through")
			assert.NoError(t, other.UnlockContext(b))
		})
	}
	require.NoError(t, l.UnlockContext(a))
	wg.Wait()
	b := someone()
	last := hold(t, other, b).Token()
	require.NoError(t, other.UnlockContext(b))
	return int(last - first)
}

func cohorts(t *testing.T, addr string) {
	require.Less(t, cohort(t, addr, 200, false), 50, "nobody else waits: it need not be given back after each second turn")
	require.Less(t, cohort(t, addr, 300, true), 75, "who has waited once, and hears of releases still, does not wait any more")
}

func TestACohortGivesTheLockBackOnlyForOthersOnMiniredis(t *testing.T) {
	cohorts(t, miniredis.RunT(t).Addr())
}

func TestACohortGivesTheLockBackOnlyForOthersOnRedis(t *testing.T) { cohorts(t, startServer(t).Addr) }

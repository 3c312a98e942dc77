package redislock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// cohort has n owners of one process take a lock one after the other, each for d, and returns how
// often it was taken from the server.
func cohort(t *testing.T, addr string, n int, d time.Duration) int {
	l := open(t, connect(t, addr), redislock.WithLeaseOptions(lease.WithMaxLocalHandoffs(1))).FencedMutex("it")
	a := someone()
	hold(t, l, a)
	var tokens sync.Map
	var wg sync.WaitGroup
	for range n - 1 {
		wg.Go(func() {
			b := someone()
			assert.NoError(t, l.LockContext(b))
			if h, err := l.Hold(b); assert.NoError(t, err) {
				tokens.Store(h.Token(), nil)
			}
			time.Sleep(d)
			assert.NoError(t, l.UnlockContext(b))
		})
	}
	require.Eventually(t, func() bool { return l.QueueLength() == n-1 }, hang, time.Millisecond)
	require.NoError(t, l.UnlockContext(a))
	wg.Wait()
	n = 0
	tokens.Range(func(_, _ any) bool { n++; return true })
	return n
}

func TestALocalGroupReleasesOnlyForOthers(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, _ *redis.Client, addr string) {
		require.Less(t, cohort(t, addr, 200, time.Millisecond), 50)
	})
}

package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/lockstest"
)

// open returns a client of c that is closed with the test.
func open(tb testing.TB, c redis.UniversalClient, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	rc, err := redislock.New(c, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, rc.Close(context.Background())) })
	return rc
}

func term(d time.Duration) redislock.Option { return redislock.WithLease(lease.WithLease(d)) }

// kinds are the kinds of locks.
var kinds = map[string]struct {
	lock func(c *redislock.Client, name string) *redislock.Lock
	// fifo is whether those who wait in one process get the lock in order of arrival.
	fifo bool
}{
	"plain":  {func(c *redislock.Client, name string) *redislock.Lock { return c.Lock(name) }, true},
	"fenced": {func(c *redislock.Client, name string) *redislock.Lock { return c.FencedLocker(name) }, true},
	"simple": {func(c *redislock.Client, name string) *redislock.Lock { return c.SimpleLocker(name) }, true},
	"fair":   {func(c *redislock.Client, name string) *redislock.Lock { return c.FairLocker(name) }, true},
}

func conform(t *testing.T, start func(tb testing.TB) (addr string)) {
	addr := start(t)
	conformOn(t, func(tb testing.TB) redis.UniversalClient { return connect(tb, addr) }, term(2*time.Second))
}

// flush deletes all keys.
func flush(tb testing.TB, c redis.UniversalClient) {
	tb.Helper()
	flushed := func() error { return c.FlushAll(context.Background()).Err() }
	if cluster, ok := c.(*redis.ClusterClient); ok {
		flushed = func() error {
			return cluster.ForEachMaster(context.Background(), func(ctx context.Context, c *redis.Client) error {
				return c.FlushAll(ctx).Err()
			})
		}
	}
	require.NoError(tb, flushed())
}

// conformOn runs the conformance suite on all kinds of locks that have one owner. client returns a client of its own each time.
func conformOn(t *testing.T, client func(tb testing.TB) redis.UniversalClient, opts ...redislock.Option) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			servers := make(map[locks.TryLocker]redis.UniversalClient)
			lockstest.TestTryLocker(t, lockstest.Config{
				New: func(tb testing.TB) locks.TryLocker {
					conn := client(tb)
					flush(tb, conn)
					l := kind.lock(open(tb, conn, opts...), "it")
					servers[l] = conn
					return l
				},
				Owned:       true,
				Reentrant:   true,
				Leased:      true,
				SpuriousTry: true, // a gate may be passed in vain
				FIFO:        kind.fifo,
				Lose:        func(l locks.TryLocker) { servers[l].Del(background, "it") },
				Waiting:     func(l locks.TryLocker) int { return l.(*redislock.Lock).QueueLength() },
				Rounds:      50,
				Settle:      5 * time.Millisecond,
				Timeout:     time.Minute,
			})
		})
	}
}

func TestLocksConformOnMiniredis(t *testing.T) {
	conform(t, func(tb testing.TB) string { return miniredis.RunT(tb).Addr() })
}

func TestLocksConformOnRedis(t *testing.T) {
	conform(t, func(tb testing.TB) string { return startServer(tb).addr })
}

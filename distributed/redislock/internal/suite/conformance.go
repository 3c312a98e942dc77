package suite

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

// Term sets the lease.
func Term(d time.Duration) redislock.Option { return redislock.WithTTL(d) }

// Kinds are the kinds of locks that have one queue in a process.
var Kinds = map[string]func(c *redislock.Client, name string) *lease.Mutex{
	"plain":  func(c *redislock.Client, name string) *lease.Mutex { return c.Mutex(name) },
	"fenced": func(c *redislock.Client, name string) *lease.Mutex { return c.FencedMutex(name) },
	"simple": func(c *redislock.Client, name string) *lease.Mutex { return c.SimpleMutex(name) },
	"fair":   func(c *redislock.Client, name string) *lease.Mutex { return c.FairMutex(name) },
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

// conformOn runs the conformance suite on all kinds of locks that have one owner. The clients
// that open returns are of the servers of direct.
func conformOn(t *testing.T, on Driver, direct redis.UniversalClient, open opener) {
	flush(t, direct) // its connections are there before the suite looks for leaks
	for name, kind := range Kinds {
		t.Run(name, func(t *testing.T) {
			lockstest.TestTryLocker(t, lockstest.Config{
				New: func(tb testing.TB) locks.TryLocker {
					flush(tb, direct)
					return kind(open(tb, Term(testbed.ConformanceLease(tb))), "it")
				},
				Owned:       true,
				Reentrant:   true,
				Leased:      true,
				SpuriousTry: true, // a gate may be passed in vain
				FIFO:        true,
				Lose:        func(locks.TryLocker) { direct.Del(Background, "it") },
				Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
				Rounds:      50,
				Settle:      5 * time.Millisecond,
				IgnoreLeaks: on.Leaks,
				Timeout:     Hang,
			})
		})
	}
}

// opener returns another client each time.
type opener func(tb testing.TB, opts ...redislock.Option) *redislock.Client

// at opens clients of the server at addr.
func at(on Driver, addr string) opener {
	return func(tb testing.TB, opts ...redislock.Option) *redislock.Client { return on.Open(tb, addr, opts...) }
}

func LocksConformOnMiniredis(t *testing.T, on Driver) {
	addr := miniredis.RunT(t).Addr()
	conformOn(t, on, Connect(t, addr), at(on, addr))
}

func LocksConformOnRedis(t *testing.T, on Driver) {
	addr := Addr(t)
	conformOn(t, on, Connect(t, addr), at(on, addr))
}

// AnyKind has all kinds of locks that exclude all other owners.
var AnyKind = map[string]func(c *redislock.Client, name string) locks.TryLocker{
	"plain":  func(c *redislock.Client, name string) locks.TryLocker { return c.Mutex(name) },
	"fenced": func(c *redislock.Client, name string) locks.TryLocker { return c.FencedMutex(name) },
	"simple": func(c *redislock.Client, name string) locks.TryLocker { return c.SimpleMutex(name) },
	"fair":   func(c *redislock.Client, name string) locks.TryLocker { return c.FairMutex(name) },
	"write":  func(c *redislock.Client, name string) locks.TryLocker { return c.RWMutex(name).WriteLocker() },
}

// AllKinds is AnyKind with readers, which do not exclude each other. Against has the lock that
// excludes a kind.
var AllKinds = func() map[string]func(c *redislock.Client, name string) locks.TryLocker {
	all := maps.Clone(AnyKind)
	all["read"] = func(c *redislock.Client, name string) locks.TryLocker { return c.RWMutex(name).ReadLocker() }
	return all
}()

func Against(kind string) string {
	if kind == "read" {
		return "write"
	}
	return kind
}

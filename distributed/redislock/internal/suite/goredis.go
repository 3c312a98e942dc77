package suite

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// OnGoRedis has the tests of package suite run on go-redis.
var OnGoRedis = Driver{
	Client: func(tb testing.TB, to Way, opts ...redislock.Option) *redislock.Client {
		c, err := redislock.New(Dial(tb, to), opts...)
		require.NoError(tb, err)
		return c
	},
	Redlock: func(tb testing.TB, to []Way, opts ...redislock.Option) *redlock.Client {
		var cs []redis.UniversalClient
		for _, one := range to {
			cs = append(cs, Dial(tb, one))
		}
		m, err := redlock.New(cs, opts...)
		require.NoError(tb, err)
		return m
	},
	Eval: "eval",
}

// Dial returns a client that is closed with the test.
func Dial(tb testing.TB, to Way) (c redis.UniversalClient) {
	tb.Helper()
	switch {
	case to.Cluster:
		o := ClusterOptions(to.Addrs)
		o.Dialer = to.Dial
		c = redis.NewClusterClient(o)
	case to.Sentinel:
		c = redis.NewFailoverClient(failoverOptions(to))
	default:
		o := Options(to.Addrs[0], to.Reply)
		o.Dialer = to.Dial
		c = redis.NewClient(o)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

func failoverOptions(to Way) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: "it", SentinelAddrs: to.Addrs, Dialer: to.Dial, DisableIdentity: true,
		DialTimeout: to.Reply, ReadTimeout: to.Reply, ContextTimeoutEnabled: true,
	}
}

// Open returns a Client of c that is closed with the test.
func Open(tb testing.TB, c redis.UniversalClient, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	rc, err := redislock.New(c, append(slices.Clip(Unhurried), opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { adaptertest.Close(tb, rc) })
	return rc
}

package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestRedlockErrorsHaveOnePrefix(t *testing.T) {
	t.Parallel()
	down := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { down.Close() })
	m, err := redlock.New([]redis.UniversalClient{down}, redlock.WithNodeTimeout(20*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { m.Close(background) })
	_, err = m.Mutex("it").TryLockContext(someone())
	require.EqualError(t, err, `redlock: try lock "it": 0 of 1 servers answered: `+
		`server 0: dial tcp 127.0.0.1:1: connect: connection refused`)
	require.ErrorIs(t, err, lease.ErrRefused)
}

func TestARefusedOptionSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: 3 * time.Second})
	t.Cleanup(func() { c.Close() })
	for text, o := range map[string]redislock.Option{
		"acknowledgement by -1 replicas, at least 0 is needed":          redlock.WithReplicas(-1, time.Second),
		"acknowledgement by replicas within 0s, at least 1ms is needed": redlock.WithReplicas(1, 0),
		"acknowledgement by replicas within 4s, " +
			"less than the ReadTimeout 3s is allowed": redlock.WithReplicas(1, 4*time.Second),
	} {
		_, err := redislock.New(c, o)
		require.EqualError(t, err, "redislock: "+text)
	}
	for text, o := range map[string]redislock.Option{
		"node timeout of -1s, at least 0 is needed":                       redlock.WithNodeTimeout(-time.Second),
		"PubSub of 9, it must be Auto, Classic, Sharded or Both":          redislock.WithPubSub(9),
		"TTL of 0s, at least 1ms is needed":                               redislock.WithTTL(0),
		"WithReplicas is refused, a majority of servers is asked instead": redlock.WithReplicas(1, time.Second),
	} {
		_, err := redlock.New([]redis.UniversalClient{c}, o)
		require.EqualError(t, err, "redlock: "+text)
	}
}

func TestARefusedLockAsksNoServer(t *testing.T) {
	t.Parallel()
	down := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { down.Close() })
	c, err := redlock.New([]redis.UniversalClient{down})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(background) })
	testbed.Refused(t, c.Mutex(""), "the name is empty")
}

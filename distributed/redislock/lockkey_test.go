package redislock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	single := func(o *redis.Options) redis.UniversalClient {
		client := redis.NewClient(o)
		t.Cleanup(func() { client.Close() })
		return client
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"b:1", "a:1"}, Password: "geheim"})
	t.Cleanup(func() { cluster.Close() })
	one := single(&redis.Options{Addr: "a:1", DB: 2, Username: "user", Password: "geheim"})
	for _, c := range []struct {
		client redis.UniversalClient
		want   string
	}{
		{one, "it\x00redis tcp a:1 2"},
		{single(&redis.Options{Network: "unix", Addr: "/run/redis"}), "it\x00redis unix /run/redis 0"},
		{cluster, "it\x00redis cluster a:1,b:1"},
	} {
		for range 2 { // each client has an id of its own
			p, err := redislock.New(c.client)
			require.NoError(t, err)
			require.Equal(t, c.want, p.Mutex("it").LockKey())
			require.Equal(t, c.want, p.FairMutex("it").LockKey())
			require.NoError(t, p.Close(t.Context()))
		}
	}
	p, err := redlock.New([]redis.UniversalClient{single(&redis.Options{Addr: "b:1"}), one})
	require.NoError(t, err)
	require.Equal(t, "it\x00redlock redis tcp a:1 2, redis tcp b:1 0", p.Mutex("it").LockKey())
	require.NoError(t, p.Close(t.Context()))
}

func TestMultiOfTwoClientsOfOneServerIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	a, b := open(t, connect(t, s.Addr)), open(t, connect(t, s.Addr))
	owner := someone()
	for range 2 {
		require.ErrorIs(t, locks.Multi(a.Mutex("it"), b.Mutex("it")).LockContext(owner), locks.ErrDeadlock)
		_, err := locks.Multi(a.Mutex("it"), b.FencedMutex("it")).TryLockContext(owner)
		require.ErrorIs(t, err, locks.ErrDeadlock)
	}
	m := locks.Multi(a.Mutex("it"), a.Mutex("it")) // listed twice
	require.NoError(t, m.LockContext(owner))
	require.NoError(t, m.UnlockContext(owner))
}

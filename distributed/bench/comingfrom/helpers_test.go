package comingfrom

import (
	"context"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// startRedis returns a client of a redis-server that runs until the test ends.
func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	port := strconv.Itoa(testbed.Port(t))
	testbed.Start(t, exec.Command(testbed.Lookup(t, "redis-server"), "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", t.TempDir()))
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	t.Cleanup(func() { rdb.Close() })
	require.Eventually(t, func() bool { return rdb.Ping(t.Context()).Err() == nil }, time.Minute, 10*time.Millisecond)
	return rdb
}

func open(t *testing.T, rdb *redis.Client) *redislock.Client {
	t.Helper()
	client, err := redislock.New(rdb)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

// fail returns work that must not run.
func fail(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("two holders")
		return nil
	}
}

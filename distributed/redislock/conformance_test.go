package redislock_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// open returns a client of c that is closed with the test.
func open(tb testing.TB, c redis.UniversalClient, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	rc, err := redislock.New(c, append([]redislock.Option{suite.Unhurried}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, rc.Close(context.Background())) })
	return rc
}

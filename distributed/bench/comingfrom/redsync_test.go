package comingfrom

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

func redsyncReport(ctx context.Context, rs *redsync.Redsync, makeReport func(ctx context.Context) error) error {
	mu := rs.NewMutex("report", redsync.WithExpiry(8*time.Second), redsync.WithTries(32))
	if err := mu.LockContext(ctx); err != nil {
		return err
	}
	defer mu.UnlockContext(context.WithoutCancel(ctx))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			time.Sleep(2 * time.Second)
			if ok, err := mu.ExtendContext(ctx); !ok || err != nil {
				cancel() // perhaps another process has the lock
			}
		}
	}()
	return makeReport(ctx)
}

func redsyncReportHere(ctx context.Context, client *redislock.Client,
	makeReport func(ctx context.Context) error) error {
	return locks.Do(ctx, client.SimpleMutex("report"), makeReport) // its ctx ends if the lock is lost
}

func redsyncOpen(a, b, c redis.UniversalClient) *redsync.Redsync {
	rs := redsync.New(goredis.NewPool(a), goredis.NewPool(b), goredis.NewPool(c))
	return rs
}

func redsyncOpenHere(a, b, c redis.UniversalClient) (*redlock.Client, error) {
	client, err := redlock.New([]redis.UniversalClient{a, b, c})
	return client, err
}

func redsyncTry(ctx context.Context, rs *redsync.Redsync) (bool, error) {
	err := rs.NewMutex("report").TryLockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return false, nil // another process makes the report
	}
	return err == nil, err
}

func redsyncTryHere(ctx context.Context, client *redislock.Client,
	makeReport func(ctx context.Context) error) error {
	ran, err := locks.TryDo(ctx, client.SimpleMutex("report"), makeReport)
	if err == nil && !ran {
		return nil // another process makes the report
	}
	return err
}

func redsyncElsewhere(ctx context.Context, rs *redsync.Redsync, value string) error {
	_, err := rs.NewMutex("report", redsync.WithValue(value)).UnlockContext(ctx)
	return err
}

func redsyncElsewhereHere(ctx context.Context, client *redislock.Client) (release func() error, err error) {
	mu := client.SimpleMutex("report")
	job := locks.WithOwner(ctx, locks.NewOwner())
	if err := mu.LockContext(job); err != nil {
		return nil, err
	}
	return func() error { return mu.UnlockContext(job) }, nil // any goroutine may call it
}

var _ = []any{redsyncOpen, redsyncOpenHere}

// A service can be moved process by process: a string that SET makes excludes both.
func TestRedsyncAndSimpleMutexExcludeEachOther(t *testing.T) {
	ctx := t.Context()
	rdb := startRedis(t)
	rs := redsync.New(goredis.NewPool(rdb))
	client := open(t, rdb)

	require.NoError(t, redsyncReport(ctx, rs, func(context.Context) error {
		ran, err := locks.TryDo(ctx, client.SimpleMutex("report"), fail(t))
		require.False(t, ran, "redsync holds it")
		return err
	}))
	require.NoError(t, redsyncReportHere(ctx, client, func(context.Context) error {
		ok, err := redsyncTry(ctx, rs)
		require.False(t, ok, "ours holds it")
		return err
	}))
	require.NoError(t, redsyncTryHere(ctx, client, func(context.Context) error { return nil }))

	release, err := redsyncElsewhereHere(ctx, client)
	require.NoError(t, err)
	ok, err := redsyncTry(ctx, rs)
	require.NoError(t, err)
	require.False(t, ok, "the job holds it")
	done := make(chan error)
	go func() { done <- release() }()
	require.NoError(t, <-done)
	ok, err = redsyncTry(ctx, rs)
	require.NoError(t, err)
	require.True(t, ok, "the job has released it in another goroutine")

	value, err := rdb.Get(ctx, "report").Result()
	require.NoError(t, err)
	require.NoError(t, redsyncElsewhere(ctx, rs, value))
}

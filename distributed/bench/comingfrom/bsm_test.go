package comingfrom

import (
	"context"
	"errors"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

func bsmReport(ctx context.Context, locker *bsm.Client, makeReport func(ctx context.Context) error) error {
	lock, err := locker.Obtain(ctx, "report", 30*time.Second, &bsm.Options{
		RetryStrategy: bsm.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil {
		return err // the end of ctx, or of the first 30 s if ctx has no deadline
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return makeReport(ctx) // has to call lock.Refresh in time
}

func bsmReportHere(ctx context.Context, client *redislock.Client, makeReport func(ctx context.Context) error) (err error) {
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	mu := client.SimpleMutex("report")
	if err := mu.LockContext(wait); err != nil {
		return err // the end of ctx, or of the 30 s
	}
	defer func() { err = errors.Join(err, mu.UnlockContext(ctx)) }()
	return makeReport(ctx) // the lock is renewed meanwhile; Hold says if it was lost
}

func bsmOnce(ctx context.Context, locker *bsm.Client, makeReport func(ctx context.Context) error) error {
	lock, err := locker.Obtain(ctx, "report", 30*time.Second, nil)
	if errors.Is(err, bsm.ErrNotObtained) {
		return nil // another process makes the report
	}
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return makeReport(ctx)
}

func bsmOnceHere(ctx context.Context, client *redislock.Client, makeReport func(ctx context.Context) error) error {
	_, err := locks.TryDo(ctx, client.SimpleMutex("report"), makeReport)
	return err // nil if another process makes the report
}

func TestBsmRedislockAndSimpleMutexExcludeEachOther(t *testing.T) {
	ctx := t.Context()
	rdb := startRedis(t)
	locker, client := bsm.New(rdb), open(t, rdb)
	require.NoError(t, bsmReport(ctx, locker, func(context.Context) error {
		return bsmOnceHere(ctx, client, fail(t))
	}))
	require.NoError(t, bsmReportHere(ctx, client, func(context.Context) error {
		return bsmOnce(ctx, locker, fail(t))
	}))
}

package comingfrom

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/onrueidis"
)

func rueidisOpen(addr string) (rueidislock.Locker, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:  1, // one server has one key of a lock
	})
	return locker, err
}

func rueidisOpenHere(addr string) (*redislock.Client, error) {
	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		return nil, err
	}
	return onrueidis.New(rdb)
}

func rueidisReport(ctx context.Context, locker rueidislock.Locker, makeReport func(ctx context.Context) error) error {
	ctx, release, err := locker.WithContext(ctx, "report")
	if err != nil {
		return err
	}
	defer release()
	return makeReport(ctx) // ctx ends if the lock is lost
}

func rueidisReportHere(ctx context.Context, client *redislock.Client,
	makeReport func(ctx context.Context) error) error {
	return locks.Do(ctx, client.Mutex("report"), makeReport) // its ctx ends if the lock is lost
}

func TestTheProgramsForRueidisRun(t *testing.T) {
	addr := startRedis(t).Options().Addr
	locker, err := rueidisOpen(addr)
	require.NoError(t, err)
	defer locker.Close()
	client, err := rueidisOpenHere(addr)
	require.NoError(t, err)
	defer client.Close(context.Background())
	ran := 0
	count := func(ctx context.Context) error {
		ran++
		return ctx.Err()
	}
	require.NoError(t, rueidisReport(t.Context(), locker, count))
	require.NoError(t, rueidisReportHere(t.Context(), client, count))
	require.Equal(t, 2, ran)
}

package redislock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
)

func TestCloseReleasesTenThousandHoldsInAHundredScripts(t *testing.T) {
	s := startServer(t)
	direct, link := connect(t, s.Addr), leasetest.NewLink(t)
	r := redis.NewClient(&redis.Options{Addr: s.Addr, Dialer: link.DialContext, MaxRetries: -1})
	defer r.Close()
	c, err := redislock.New(r, term(time.Minute))
	require.NoError(t, err)
	const n = 10_000
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			a := someone()
			for i := w; i < n; i += 16 {
				if err := c.Mutex(fmt.Sprint("it", i)).LockContext(a); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	scripts := func() int { return commands(t, direct, "evalsha") + commands(t, direct, "eval") }
	before := scripts()
	link.Delay(40 * time.Millisecond)
	began := time.Now()
	require.NoError(t, c.Close(background))
	t.Logf("closed in %v", time.Since(began))
	require.LessOrEqual(t, scripts()-before, n/100+n/1000)
	size, err := direct.DBSize(background).Result()
	require.NoError(t, err)
	require.Less(t, size, int64(10), "nothing is left but what tells of the client")
}

func TestCloseEndsAtOnceBesideALockThatWasOverwritten(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c, err := redislock.New(connect(t, s.Addr), term(time.Minute))
	require.NoError(t, err)
	for _, name := range []string{"a", "overwritten", "c"} {
		hold(t, c.Mutex(name), someone())
	}
	require.NoError(t, direct.Set(background, "overwritten", "text", 0).Err())
	before := commands(t, direct, "evalsha") + commands(t, direct, "eval")
	require.NoError(t, c.Close(background), "nothing of the client is left")
	require.LessOrEqual(t, commands(t, direct, "evalsha")+commands(t, direct, "eval")-before, 2)
	require.Zero(t, direct.Exists(background, "a", "c").Val())
	require.Equal(t, "text", direct.Get(background, "overwritten").Val())
}

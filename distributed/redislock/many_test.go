package redislock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

func TestAHundredScriptsRenewTenThousandHolds(t *testing.T) {
	s := startServer(t)
	direct := connect(t, s.Addr)
	const n, d = 10_000, 12 * time.Second
	c, err := redislock.New(connect(t, s.Addr), term(d))
	require.NoError(t, err)
	defer c.Close(background) // which may not be done with all of them in time
	holds := make([]locks.Hold, n)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			a := someone()
			for i := w; i < n; i += 16 {
				l := c.Mutex(fmt.Sprint("it", i))
				if err := l.LockContext(a); err != nil {
					t.Error(err)
					return
				}
				holds[i], _ = l.Hold(a)
			}
		})
	}
	wg.Wait()
	scripts := func() int { return commands(t, direct, "evalsha") + commands(t, direct, "eval") }
	renewed := func() int { return commands(t, direct, "pexpire") }
	before, expired := scripts(), renewed()
	require.Eventually(t, func() bool { return renewed() >= expired+n }, hang, 100*time.Millisecond,
		"each is renewed")
	times := float64(renewed()-expired) / n
	require.LessOrEqual(t, float64(scripts()-before), times*n/100*1.5, "in batches of a hundred")
	for _, h := range holds {
		require.NoError(t, h.Err())
	}
}

func TestAWaiterIsRefusedByTwoCommands(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	holder, c := open(t, connect(t, s.Addr)), open(t, connect(t, s.Addr))
	a, b := someone(), someone()
	refused := func() {
		ok, err := c.Mutex("it").TryLockContext(b)
		require.NoError(t, err)
		require.False(t, ok)
	}
	require.NoError(t, holder.Mutex("it").LockContext(a))
	refused() // and the script is known
	require.NoError(t, direct.Do(background, "config", "resetstat").Err())
	const n = 10
	for range n {
		refused()
	}
	text, err := direct.Info(background, "commandstats").Result()
	require.NoError(t, err)
	inside := 0
	for _, name := range []string{"exists", "hexists", "hget", "hmget", "hscan", "pttl"} {
		inside += commands(t, direct, name)
	}
	require.Equal(t, 2*n, inside, text)
	require.Equal(t, n, commands(t, direct, "evalsha"))
	require.NoError(t, holder.Mutex("it").UnlockContext(a))
}

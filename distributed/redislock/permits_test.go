package redislock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

const (
	permitsKey  = "locks_permits:{it}"
	permitsList = "locks_waiting_permits:{it}"
)

// get acquires permits of s.
func get(tb testing.TB, s locks.Semaphore, n int64) locks.Permits {
	tb.Helper()
	ctx, cancel := context.WithTimeout(background, hang)
	defer cancel()
	p, err := s.AcquireContext(ctx, n)
	require.NoError(tb, err)
	return p
}

// waits acquires n permits of s in a goroutine, and sends true when it has them.
func waits(ctx context.Context, s locks.Semaphore, n int64) <-chan locks.Permits {
	got := make(chan locks.Permits, 1)
	go func() {
		p, err := s.AcquireContext(ctx, n)
		if err == nil {
			got <- p
		}
		close(got)
	}()
	return got
}

// inPermitsList waits until n waiters are in the list.
func inPermitsList(tb testing.TB, direct *redis.Client, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		return direct.LLen(background, permitsList).Val() == int64(n)
	}, hang, time.Millisecond)
}

func TestAReleaseWakesAllWaitersThatFit(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		s := open(t, connect(t, addr)).Semaphore("it", 3)
		one, two := get(t, s, 1), get(t, s, 2)
		heard := direct.Subscribe(background, permitsList+":x")
		defer heard.Close()
		_, err := heard.Receive(background)
		require.NoError(t, err)
		direct.RPush(background, permitsList, "x:1:3:3", "what no waiter leaves", "x:2:1:3", "x:3:1:3", "x:4:1:3")
		require.NoError(t, two.ReleaseContext(background))
		for _, name := range []string{"x:2:1:3", "x:3:1:3"} {
			m, err := heard.ReceiveMessage(background)
			require.NoError(t, err)
			require.Equal(t, name, m.Payload)
		}
		require.Equal(t, []string{"x:1:3:3", "x:4:1:3"}, direct.LRange(background, permitsList, 0, -1).Val())
		require.NoError(t, one.ReleaseContext(background))
		m, err := heard.ReceiveMessage(background)
		require.NoError(t, err)
		require.Equal(t, "x:1:3:3", m.Payload)
		require.Zero(t, direct.Exists(background, permitsKey).Val())
	})
}

func TestAWaiterForPermitsThatLeavesIsForgotten(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr), rarely)
	all := get(t, c.Semaphore("it", 2), 2)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	got := waits(ctx, c.Semaphore("it", 2), 1)
	inPermitsList(t, direct, 1)
	cancel()
	require.Nil(t, <-got)
	inPermitsList(t, direct, 0)
	require.NoError(t, all.ReleaseContext(background))
}

func TestInspectTellsOfPermitsAndWaiters(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr), rarely, redislock.WithLabel("billing"))
	all := get(t, c.Semaphore("it", 3), 3)
	got := waits(background, c.Semaphore("it", 3), 2)
	inPermitsList(t, direct, 1)
	d := open(t, connect(t, s.Addr)).Semaphore("it", 3)
	var info locks.Info
	require.Eventually(t, func() bool { // the identity comes in the background
		var err error
		info, err = d.Inspect(background)
		require.NoError(t, err)
		return len(info.Holders) == 1 && info.Holders[0].Label == "billing"
	}, hang, time.Millisecond)
	require.EqualValues(t, 3, info.Holders[0].Permits)
	require.Greater(t, info.Holders[0].Left, 10*time.Second)
	require.Equal(t, 1, info.Waiting)
	require.EqualValues(t, 2, info.Waiters[0].Permits)
	require.NoError(t, all.ReleaseContext(background))
	require.NoError(t, (<-got).ReleaseContext(background))
}

func TestALockAndASemaphoreShareOnlyTheName(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr))
		p := get(t, c.Semaphore("it", 1), 1)
		l, a := c.Mutex("it"), someone()
		require.NoError(t, l.LockContext(a))
		require.NoError(t, p.ReleaseContext(background))
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestWrongSemaphoresAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr))
	for _, sem := range []*lease.Semaphore{c.Semaphore("", 1), c.Semaphore("it", 1<<53)} {
		_, _, err := sem.TryAcquireContext(background, 1)
		require.Error(t, err)
	}
	direct.Set(background, permitsKey, "other", 0)
	_, _, err := c.Semaphore("it", 1).TryAcquireContext(background, 1)
	require.ErrorIs(t, err, locks.ErrForeign)
	require.Equal(t, "other", direct.Get(background, permitsKey).Val())
}

func TestDeadLargeWaitersHideNoLiveWaiter(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		s := open(t, connect(t, addr)).Semaphore("it", 3)
		one, two, three := get(t, s, 1), get(t, s, 1), get(t, s, 1)
		heard := direct.Subscribe(background, permitsList+":x")
		defer heard.Close()
		_, err := heard.Receive(background)
		require.NoError(t, err)
		for i := range 100 {
			direct.RPush(background, permitsList, fmt.Sprintf("dead:%d:3:3", i))
		}
		direct.RPush(background, permitsList, "x:1:1:3")
		require.NoError(t, one.ReleaseContext(background))
		require.NoError(t, two.ReleaseContext(background))
		m, err := heard.ReceiveTimeout(background, hang)
		require.NoError(t, err)
		require.Equal(t, "x:1:1:3", m.(*redis.Message).Payload)
		require.NoError(t, three.ReleaseContext(background))
	})
}

func TestALeaveThatWakesNobodyPublishesNothing(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr), rarely)
		get(t, open(t, connect(t, addr)).Semaphore("it", 2), 2)
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		got := waits(ctx, c.Semaphore("it", 2), 1)
		inPermitsList(t, direct, 1)
		direct.Del(background, permitsList)
		direct.RPush(background, permitsList, "x:1:2:2")
		heard := direct.Subscribe(background, "locks_permits_channel:{it}")
		defer heard.Close()
		_, err := heard.Receive(background)
		require.NoError(t, err)
		cancel()
		require.Nil(t, <-got)
		require.NoError(t, c.Close(background), "which waits for the request that leaves")
		direct.Publish(background, "locks_permits_channel:{it}", "the next message")
		m, err := heard.ReceiveMessage(background)
		require.NoError(t, err)
		require.Equal(t, "the next message", m.Payload)
	})
}

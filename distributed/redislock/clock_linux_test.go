package redislock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

// startShifted starts a server whose clock is set by set.
func startShifted(t *testing.T) (s *server, set func(by time.Duration)) {
	env, write := testbed.Clock(t)
	s = startServerEnv(t, env)
	direct := connect(t, s.Addr)
	return s, func(by time.Duration) {
		write(by)
		require.Eventually(t, func() bool { // the server looks at the clock now and then
			return direct.Time(background).Val().Sub(time.Now().Add(by)).Abs() < 10*time.Second
		}, hang, time.Millisecond)
	}
}

func TestARenewalNoticesAServerClockSetForward(t *testing.T) {
	t.Parallel()
	s, set := startShifted(t)
	l, rival := open(t, connect(t, s.Addr), term(3*time.Second)).FencedMutex("it"), open(t,
		connect(t, s.Addr)).FencedMutex("it")
	a, b := someone(), someone()
	h := hold(t, l, a)
	set(time.Minute)
	token := hold(t, rival, b).Token()
	require.Greater(t, token, h.Token(), "two hold it for a moment: the token tells them apart")
	select {
	case <-h.Lost():
	case <-time.After(hang):
		t.Fatal("the renewal did not tell")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestAServerClockSetBackProlongsTheLock(t *testing.T) {
	t.Parallel()
	s, set := startShifted(t)
	direct := connect(t, s.Addr)
	for name, lock := range anyKind {
		set(0)
		l := lock(open(t, connect(t, s.Addr), term(long)), name)
		rival := lock(open(t, connect(t, s.Addr), term(long)), name)
		a, b := someone(), someone()
		require.NoError(t, l.LockContext(a))
		h, err := l.(locks.Leased).Hold(a)
		require.NoError(t, err)
		before := direct.PTTL(background, name).Val()
		set(-time.Hour)
		require.Greater(t, direct.PTTL(background, name).Val(), 50*time.Minute+before, "or the shim does nothing")
		ok, err := rival.TryLockContext(b)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, rival.LockContext(b), "progress")
		require.NoError(t, rival.UnlockContext(b))

		// A lock whose holder has died lasts until the server's clock reaches the end of its lease
		// again.
		require.NoError(t, l.LockContext(a))
		got := make(chan error, 1)
		go func() { got <- rival.LockContext(b) }()
		set(time.Hour)
		select {
		case err := <-got:
			require.NoError(t, err)
		case <-time.After(hang):
			t.Fatal("no progress")
		}
		require.NoError(t, rival.UnlockContext(b))
		l.UnlockContext(a)
	}
}

func TestTheQueueIsIndependentOfItsWaitersClocks(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			s, set := startShifted(t)
			set(by) // so that all clients are off by as much
			l := lineOn(t, s, 4, term(lease.DefaultLease))
			queue := l.direct.LRange(background, fairQueue, 0, -1).Val()
			require.Len(t, queue, 4)
			now := l.direct.Time(background).Val()
			for _, z := range l.direct.ZRangeWithScores(background, fairTimes, 0, -1).Val() {
				require.Contains(t, queue, z.Member)
				require.InDelta(t, 60, time.UnixMilli(int64(z.Score)).Sub(now).Seconds(), 20)
			}
			l.finish()
			require.Equal(t, []int{0, 1, 2, 3}, l.order)
		})
	}
}

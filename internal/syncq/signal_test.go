package syncq

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestASignalThatNobodyWaitsForTakesNoGuard(t *testing.T) {
	var s ReadWrite
	c := s.NewCond()
	require.True(t, s.TryLock(Owned(1)))
	s.guard.Lock()
	signalled := run(func() bool { return c.Signal() || c.Broadcast() > 0 })
	require.False(t, signalled.result(t), "with the guard held by the test")
	s.guard.Unlock()
	require.True(t, s.Unlock())
	idle(t, &s)
}

// Each change of the condition's queue is seen by a look at the number alone.
func TestAConditionCountsItsWaitersThroughout(t *testing.T) {
	var s ReadWrite
	c := s.NewCond()
	stop := make(chan struct{})
	wait := func(who int64) asyncCall {
		return run(func() bool {
			s.Lock(Owned(who))
			defer s.Unlock()
			return c.Wait(Owned(who), until(stop))
		})
	}
	counts := func(n int) {
		t.Helper()
		testbed.Await(t, func() bool { return c.Len() == n })
	}

	first := wait(2)
	counts(1)
	second := wait(3)
	counts(2)
	third, fourth := wait(4), wait(5)
	counts(4)
	s.Lock(Owned(1))
	require.True(t, c.Signal())
	require.Equal(t, 3, c.Len())
	require.True(t, s.Unlock())
	require.True(t, first.result(t))
	close(stop)
	for _, w := range []asyncCall{second, third, fourth} {
		require.False(t, w.result(t))
	}
	require.Zero(t, c.Len(), "they gave up")

	signalled := run(func() bool {
		s.Lock(Owned(6))
		defer s.Unlock()
		return c.WaitFor(Owned(6), time.Hour)
	})
	counts(1)
	s.Lock(Owned(1))
	require.Equal(t, 1, c.Broadcast())
	require.Zero(t, c.Len())
	require.True(t, s.Unlock())
	require.True(t, signalled.result(t))

	w := c.NewWaiter(Owned(7), nil)
	s.Lock(Owned(7))
	w.Enqueue(false)
	require.Equal(t, 1, c.Len())
	w.Abandon()
	require.Zero(t, c.Len())
	require.False(t, c.Signal())
	require.True(t, s.Unlock())
	idle(t, &s)
}

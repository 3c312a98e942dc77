package syncq

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// endsGranted ends the wait of n, which has the lock, and its hold, the last one.
func endsGranted(t *testing.T, s *Sync, n *node) {
	t.Helper()
	n.place.Park()
	n.recycle()
	require.True(t, s.Unlock(FIFO))
	idle(t, s)
}

func TestAReaderThatBargesInDuringTheLastReleaseIsCounted(t *testing.T) {
	s := New(FIFO)
	require.True(t, s.TryLockShared())
	n := newNode(Owned(2), false)
	require.True(t, s.join(n, FIFO))
	s.guard.Lock()
	barged := false
	wake, ok := s.advance(FIFO, func(w uint64) (uint64, bool) {
		barged = barged || s.TryLockShared()
		return drop(w)
	})
	s.guard.Unlock()
	require.True(t, ok)
	require.Nil(t, wake)
	require.Equal(t, 1, s.Shared(), "the hold of the reader that came is left")
	require.NoError(t, s.Verify())
	require.True(t, s.UnlockShared(FIFO))
	endsGranted(t, &s, n)
}

func TestAReleaseThatIsRefusedHandsNothingOver(t *testing.T) {
	s := New(FIFO)
	require.True(t, s.TryLock(Owned(1)))
	n := newNode(Owned(2), false)
	require.True(t, s.join(n, FIFO))
	require.False(t, s.UnlockShared(FIFO))
	require.EqualValues(t, 1, s.Owner())
	require.Equal(t, 1, s.Len())
	require.True(t, s.Unlock(FIFO))
	endsGranted(t, &s, n)
}

func TestAUsedNodeRemembersNothingOfItsWait(t *testing.T) {
	n := newNode(Owned(1), false)
	n.oneWait = oneWait{
		state: granted, owed: true, lost: 1, began: 1, prev: n,
		limited: true, refused: true, goroutine: 1, kind: new(Kind), since: 1,
	}
	n.recycle()
	require.Zero(t, n.oneWait)
}

func TestAWaitWithoutALimitEndsBySignal(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		c := NewCond(s, policy)
		require.True(t, s.TryLock(Owned(1)))
		waiter := run(func() bool { return c.Wait(Owned(1), nil) })
		eventually(t, func() bool { return c.Len() == 1 })
		require.True(t, s.TryLock(Owned(2)))
		require.True(t, c.Signal())
		require.True(t, s.Unlock(policy))
		require.True(t, waiter.result(t))
		require.True(t, s.Unlock(policy))
		idle(t, s)
	})
}

func TestWaitersOfABroadcastAreDue(t *testing.T) {
	for _, waiters := range []int{1, 2} {
		s := New(NonFair)
		c := NewCond(&s, NonFair)
		require.True(t, s.TryLock(Owned(1)))
		var all []Waiter
		for i := range waiters {
			w := c.NewWaiter(Owned(int64(i+2)), nil)
			w.Enqueue(false)
			all = append(all, w)
		}
		require.Equal(t, waiters, c.Broadcast())
		require.Equal(t, waiters > 1, s.queue.head.owed, "%d waiters", waiters)
		require.True(t, s.Unlock(NonFair))
		for _, w := range all {
			require.True(t, w.Await())
			require.True(t, s.Unlock(NonFair))
		}
		idle(t, &s)
	}
}

func TestASignalReadsTheClockOnlyBehindOtherWaiters(t *testing.T) {
	s := New(NonFair)
	c := NewCond(&s, NonFair)
	require.True(t, s.TryLock(Owned(1)))
	var all []Waiter
	for i := range 2 {
		w := c.NewWaiter(Owned(int64(i+2)), nil)
		w.Enqueue(false)
		all = append(all, w)
		require.True(t, c.Signal())
		require.Equal(t, i > 0, w.n.since != 0, "waiter %d", i)
	}
	require.True(t, s.Unlock(NonFair))
	for _, w := range all {
		require.True(t, w.Await())
		require.True(t, s.Unlock(NonFair))
	}
	idle(t, &s)
}

func TestTheFirstWriterBehindReadersIsOwedWithoutTheClock(t *testing.T) {
	s := New(NonFair)
	require.True(t, s.TryLockShared())
	var all []*node
	for i := range 2 {
		n := newNode(Owned(int64(i+2)), false)
		require.True(t, s.join(n, NonFair))
		require.Equal(t, i > 0, n.since != 0, "writer %d", i)
		all = append(all, n)
	}
	require.True(t, all[0].owed)
	for _, n := range all {
		s.Unlock(NonFair)
		n.place.Park()
		require.True(t, s.compete(n))
		n.recycle()
	}
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

package syncq

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/test/testbed"
)

// endsGranted ends the wait of n, which has the lock, and the hold of n, which is the last.
func endsGranted(t *testing.T, s *ReadWrite, n *node) {
	t.Helper()
	n.place.Park()
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, s)
}

func TestAReaderMayBargeDuringTheLastRelease(t *testing.T) {
	s := NewReadWrite(FIFO)
	require.True(t, s.TryLockShared())
	n := s.newNode(Owned(2), false)
	require.True(t, s.join(n))
	s.guard.Lock()
	barged := false
	wake, ok := s.advance(func(w uint64) (uint64, bool) {
		barged = barged || s.TryLockShared()
		return drop(w)
	})
	s.guard.Unlock()
	require.True(t, ok)
	require.Nil(t, wake)
	require.Equal(t, 1, s.Shared(), "the hold of the reader that came is left")
	require.NoError(t, s.Verify())
	require.True(t, s.UnlockShared())
	endsGranted(t, &s, n)
}

func TestAReleaseThatIsRefusedHandsNothingOver(t *testing.T) {
	s := NewReadWrite(FIFO)
	require.True(t, s.TryLock(Owned(1)))
	n := s.newNode(Owned(2), false)
	require.True(t, s.join(n))
	require.False(t, s.UnlockShared())
	require.EqualValues(t, 1, s.Owner())
	require.Equal(t, 1, s.Len())
	require.True(t, s.Unlock())
	endsGranted(t, &s, n)
}

func TestTheZeroOutcomeIsNoAcquisition(t *testing.T) {
	var forgotten Outcome
	require.NotEqual(t, Acquired, forgotten)
}

func TestTheFirstWaiterMakesAZeroLockFIFO(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	n := s.newNode(Owned(2).FIFO(), false)
	require.True(t, s.join(n))
	require.Equal(t, FIFO, s.Policy())
	require.True(t, s.Unlock())
	require.EqualValues(t, 2, s.Owner(), "the lock was handed off")
	parks(t, &s, n)
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestTheFirstConditionMakesAZeroLockFIFO(t *testing.T) {
	var s ReadWrite
	NewCond(&s.Sync, FIFO)
	require.Equal(t, FIFO, s.Policy())
	NewCond(&s.Sync, NonFair)
	require.Equal(t, FIFO, s.Policy())
}

func TestAUsedNodeRemembersNothingOfItsWait(t *testing.T) {
	n := new(ReadWrite).newNode(Owned(1), false)
	n.oneWait = oneWait{
		s: n.s, policy: FIFO, state: granted, reserved: true, lost: 1, began: 1, prev: n,
		limited: true, refused: true, goroutine: 1, kind: new(Kind), since: 1,
	}
	n.recycle()
	require.Zero(t, n.oneWait)
}

func TestAWaitWithoutALimitEndsBySignal(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		c := NewCond(&s.Sync, s.Policy())
		require.True(t, s.TryLock(Owned(1)))
		waiter := run(func() bool { return c.Wait(Owned(1), nil) })
		testbed.Await(t, func() bool { return c.Len() == 1 })
		require.True(t, s.TryLock(Owned(2)))
		require.True(t, c.Signal())
		require.True(t, s.Unlock())
		require.True(t, waiter.result(t))
		require.True(t, s.Unlock())
		idle(t, s)
	})
}

func TestWaitersOfABroadcastAreDue(t *testing.T) {
	for _, waiters := range []int{1, 2} {
		s := NewReadWrite(NonFair)
		c := NewCond(&s.Sync, NonFair)
		require.True(t, s.TryLock(Owned(1)))
		var all []Waiter
		for i := range waiters {
			w := c.NewWaiter(Owned(int64(i+2)), nil)
			w.Enqueue(false)
			all = append(all, w)
		}
		require.Equal(t, waiters, c.Broadcast())
		require.Equal(t, waiters > 1, s.queue.head.reserved, "%d waiters", waiters)
		require.True(t, s.Unlock())
		for _, w := range all {
			require.True(t, w.Await())
			require.True(t, s.Unlock())
		}
		idle(t, &s)
	}
}

func TestOnlySignalsBehindOtherWaitersReadTheClock(t *testing.T) {
	s := NewReadWrite(NonFair)
	c := NewCond(&s.Sync, NonFair)
	require.True(t, s.TryLock(Owned(1)))
	var all []Waiter
	for i := range 2 {
		w := c.NewWaiter(Owned(int64(i+2)), nil)
		w.Enqueue(false)
		all = append(all, w)
		require.True(t, c.Signal())
		require.Equal(t, i > 0, w.n.since != 0, "waiter %d", i)
	}
	require.True(t, s.Unlock())
	for _, w := range all {
		require.True(t, w.Await())
		require.True(t, s.Unlock())
	}
	idle(t, &s)
}

func TestTheFirstWriterBehindReadersReadsNoClock(t *testing.T) {
	s := NewReadWrite(NonFair)
	require.True(t, s.TryLockShared())
	var all []*node
	for i := range 2 {
		n := s.newNode(Owned(int64(i+2)), false)
		require.True(t, s.join(n))
		require.Equal(t, i > 0, n.since != 0, "writer %d", i)
		all = append(all, n)
	}
	require.True(t, all[0].reserved)
	for _, n := range all {
		require.True(t, s.Unlock())
		n.place.Park()
		require.True(t, n.compete())
		n.recycle()
	}
	require.True(t, s.Unlock())
	idle(t, &s)
}

// guardIsFree checks that nobody has the guard.
func guardIsFree(t *testing.T, s *ReadWrite) {
	t.Helper()
	require.True(t, s.guard.TryLock())
	s.guard.Unlock()
}

// parks plays the rest of a wait that enqueue has begun.
func parks(t *testing.T, s *ReadWrite, n *node) {
	t.Helper()
	guardIsFree(t, s)
	n.place.Park()
	require.True(t, n.policy == FIFO || n.compete())
	n.recycle()
}

func TestOnlyAnUnlimitedWaitKeepsTheGuard(t *testing.T) {
	never, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, c := range map[string]struct {
		l    *park.Limit
		held bool
	}{
		"no limit":               {nil, true},
		"a context without Done": {park.Until(context.Background()), true},
		"a context":              {park.Until(never), false},
		"a time limit":           {park.After(time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, s *ReadWrite) {
				require.True(t, s.TryLock(Owned(1)))
				n := s.newNode(Owned(2), false)
				c.l.Open(&n.place)
				queued, guard := n.enqueue()
				require.True(t, queued)
				require.Equal(t, c.held, guard != nil)
				if c.held {
					require.False(t, s.guard.TryLock())
					guard.Unlock()
				}
				require.True(t, s.Release(1))
				parks(t, s, n)
				require.True(t, s.Release(2))
			})
		})
	}
}

// The readers have left since the writer looked. Its own wait clears the bias, and finds the table
// empty. So it is unparked before it parks.
func TestWriterUnparkedAsItJoinsKeepsNoGuard(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.Biased())
		n := s.newNode(Owned(1), false)
		queued, guard := n.enqueue()
		require.True(t, queued)
		require.Nil(t, guard)
		parks(t, s, n)
		require.True(t, s.Release(1))
	})
}

// The last of the readers takes the guard.
func TestAWriterAwaitsReadersWithoutTheGuard(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		n := s.newNode(Owned(1), false)
		queued, guard := n.enqueue()
		if guard != nil {
			guard.Unlock()
		}
		require.True(t, queued)
		require.Nil(t, guard)
		require.True(t, s.ReleaseRead(2))
		parks(t, s, n)
		require.True(t, s.Release(1))
	})
}

func TestConditionWaitUnparksAGroupWithoutTheGuard(t *testing.T) {
	for readers := range 3 {
		s := NewReadWrite(FIFO)
		c := NewCond(&s.Sync, FIFO)
		require.True(t, s.TryLock(Owned(1)))
		var group []*node
		for range readers {
			r := s.newNode(Anonymous(0), true)
			require.True(t, s.join(r))
			group = append(group, r)
		}
		n := s.newNode(Owned(1), false)
		guard := c.enqueue(n, drop)
		require.Equal(t, readers < 2, guard != nil)
		if guard != nil {
			guard.Unlock()
		}
		for _, r := range group {
			parks(t, &s, r)
			require.True(t, s.UnlockShared())
		}
		require.True(t, c.Signal())
		parks(t, &s, n)
		require.True(t, s.Unlock())
		idle(t, &s)
	}
}

// The waiter waits without a limit, so it keeps the guard until it parks. Its owner gets the lock.
func TestADismissedWaiterWithoutALimitReturns(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.TryLock(Owned(1)))
		w := s.NewWaiter(Owned(-5), false, park.Until(context.Background()))
		c := run(func() bool { return w.Acquire() == Acquired })
		testbed.Await(t, func() bool { return s.Len() == 1 })
		require.True(t, w.Dismiss())
		require.True(t, c.result(t))
		w.End()
		guardIsFree(t, s)
		require.True(t, s.Release(1))
	})
}

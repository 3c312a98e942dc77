package syncq

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestARefusedFirstWaitersWakeUpGoesOn(t *testing.T) {
	// The wait is refused by hand between its beginning and its end: nothing else makes it the
	// first in the queue at that moment.
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	first, permit := enqueued(t, &s, Owned(2))
	second := run(func() bool { return s.Lock(Owned(3)) })
	testbed.Await(t, func() bool { return s.Len() == 2 })
	require.True(t, s.Unlock()) // wakes the first
	Entry{first}.Refuse()
	require.True(t, first.refused)
	require.Empty(t, permit, "nothing is left of its own wake-up")
	first.recycle()
	require.True(t, second.result(t))
	s.Unlock()
	require.NoError(t, s.Verify())
}

func TestLateRefusalLeavesLockWithItsNewHolder(t *testing.T) {
	s := NewReadWrite(FIFO)
	require.True(t, s.TryLock(Owned(1)))
	n := s.newNode(Owned(2), false)
	require.True(t, s.join(n))
	require.True(t, s.Unlock())
	Entry{n}.Refuse()
	require.False(t, n.refused)
	n.recycle()
	require.EqualValues(t, 2, s.Owner())
	s.Unlock()
	require.NoError(t, s.Verify())
}

func TestWaiterThatWinsTheLockNoLongerWaits(t *testing.T) {
	var s ReadWrite
	queue := func() (who []int64) {
		s.EachWaiting(func(w Waiting) { who = append(who, w.Who) })
		return who
	}
	require.True(t, s.TryLock(Owned(1)))
	n, permit := enqueued(t, &s, Owned(2))
	require.True(t, s.join(s.newNode(Owned(3), false)))
	require.True(t, s.Unlock())
	<-permit
	require.Equal(t, []int64{2, 3}, queue(), "it is awake, and may lose the race")
	require.True(t, n.compete())
	require.Equal(t, []int64{3}, queue())
}

func TestEachWaitHasAnIDOfItsOwn(t *testing.T) {
	s := NewReadWrite(FIFO)
	require.True(t, s.TryLock(Owned(1)))
	n := s.newNode(Owned(-2), true)
	n.limited = true
	seen := map[WaitID]bool{{}: true}
	for range 2 {
		require.True(t, s.join(n))
		s.EachWaiting(func(w Waiting) {
			require.Equal(t, Waiting{ID: w.ID, Who: -2, Goroutine: n.goroutine, Shared: true, Limited: true}, w)
			require.False(t, seen[w.ID], "an earlier wait in the same node is another one")
			seen[w.ID] = true
		})
		s.guard.Lock()
		n.cancel()
		s.guard.Unlock()
	}
	require.Len(t, seen, 3)
	n.recycle()
}

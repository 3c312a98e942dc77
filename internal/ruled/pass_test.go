package ruled

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

// wokenLate returns a NonFair word of two free permits. Its first waiter wants both, was woken d
// ago, and has had no processor yet.
func wokenLate(t *testing.T, d time.Duration) (s *Sync[permits], first *Node) {
	t.Helper()
	s = new(Sync[permits])
	s.Init(permits{}, 0, true)
	first = waits(t, s, 2)
	require.True(t, s.Release(2))
	require.Equal(t, racing, first.state)
	time.Sleep(d)
	return s, first
}

// pass acquires n permits past the waiters, and gives each back. One other permit is free.
func pass(t *testing.T, s *Sync[permits], n int) {
	t.Helper()
	for range n {
		require.True(t, s.TryAcquire(1))
		require.True(t, s.Release(1))
		inOrder(t, s)
	}
}

// reserved returns the word and the waiter of wokenLate, for which the word is kept now. The caller
// has one permit, and the other is free.
func reserved(t *testing.T) (s *Sync[permits], first *Node) {
	t.Helper()
	s, first = wokenLate(t, syncq.MaxBarging)
	require.True(t, s.TryAcquire(1))
	pass(t, s, syncq.BargedRounds)
	require.True(t, first.reserved)
	require.Equal(t, racing, first.state)
	require.False(t, s.TryAcquire(1), "the free permit is kept too")
	return s, first
}

func TestAReleaseAdmitsAnAwakeWaiterThatGetsNoProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := wokenLate(t, syncq.MaxBarging)
		unparked(t, n)
		pass(t, s, syncq.BargedRounds-1)
		require.Equal(t, racing, n.state)
		pass(t, s, 1)
		require.False(t, s.TryAcquire(1), "the waiter has acquired before it runs")
		require.Empty(t, n.Permits(), "one unpark is enough")
		require.True(t, s.compete(n))
		require.Equal(t, syncq.Acquired, n.Outcome())
		inOrder(t, s)
	})
}

func TestAReservedWaiterThatRunsLateIsAdmittedByTheNextRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := reserved(t)
		unparked(t, n)
		second := waits(t, s, 1)
		require.True(t, s.Release(1))
		inOrder(t, s)
		require.Empty(t, n.Permits(), "one unpark is enough")
		require.True(t, s.compete(n))
		require.True(t, s.Release(2))
		unparked(t, second)
		require.True(t, s.compete(second))
		inOrder(t, s)
	})
}

func TestAReservedWaiterThatRunsBeforeTheReleaseSleepsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := reserved(t)
		unparked(t, n)
		require.False(t, s.compete(n))
		inOrder(t, s)
		require.True(t, s.Release(1))
		unparked(t, n)
		require.True(t, s.compete(n))
		inOrder(t, s)
	})
}

func TestAnAwakeReservedWaiterMayGiveUp(t *testing.T) {
	for _, granted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, n := reserved(t)
			want := syncq.Ended
			if granted {
				require.True(t, s.Release(1))
				want = syncq.Acquired
			}
			require.Equal(t, want, s.Leave(n))
			require.Empty(t, n.Permits(), "it has taken the permit")
			require.True(t, s.Release(1))
			require.True(t, s.TryAcquire(1))
			require.False(t, s.HasQueued())
			inOrder(t, s)
		})
	}
}

func TestARefusalEndsTheWaitOfAnAwakeReservedWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := reserved(t)
		s.Refuse(func(uint64) bool { return true })
		inOrder(t, s)
		unparked(t, n)
		require.True(t, s.compete(n))
		require.Equal(t, syncq.Refused, n.Outcome())
		require.Empty(t, n.Permits())
	})
}

func TestTheWordIsNotKeptAfterAShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := wokenLate(t, syncq.MaxBarging-1)
		pass(t, s, 2*syncq.BargedRounds)
		require.Equal(t, racing, n.state)
	})
}

func TestALongQueueMakesWaitersOverdueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := wokenLate(t, syncq.MaxBarging)
		for range syncq.LongQueue {
			waits(t, s, 1)
		}
		pass(t, s, syncq.BargedRounds)
		require.Equal(t, racing, n.state)
		time.Sleep(syncq.MaxBarging)
		pass(t, s, syncq.BargedRounds)
		require.Equal(t, granted, n.state)
	})
}

func TestAWaitCountsFromTheArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[permits]
		s.Init(permits{}, 0, true)
		first, second := waits(t, &s, 1), waits(t, &s, 1)
		time.Sleep(syncq.MaxBarging)
		require.True(t, s.Release(1))
		unparked(t, first)
		require.True(t, first.reserved)
		require.True(t, second.reserved, "it is overdue when it becomes the first")
		require.False(t, s.TryAcquire(1))
	})
}

func TestAReleasePastAnAwakeWaiterDoesNotWaitForTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := wokenLate(t, syncq.MaxBarging)
		s.guard.Lock()
		for range syncq.BargedRounds {
			require.True(t, s.TryAcquire(1))
			require.True(t, s.Release(1))
		}
		s.guard.Unlock()
		require.Equal(t, racing, n.state)
	})
}

func TestASpinTakesAWordThatBecomesFree(t *testing.T) {
	var s Sync[permits]
	s.Init(permits{}, 0, true)
	long := s.failed.Rounds()
	for range 100 {
		require.False(t, s.spin(1))
	}
	require.LessOrEqual(t, s.failed.Rounds(), 1, "spins in vain become shorter")
	s.Release(1)
	require.Equal(t, long > 0, s.spin(1))
	require.Equal(t, long, s.failed.Rounds())
}

package syncq

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lock that belongs to no goroutine can be released by anybody who sees that it is held, also while
// the waiter that got it is still on its way. So can the hold of an explicit owner.

var shifting = []Party{Anonymous(7), Owned(7), Owned(-7)}

// Those of whom the winner of a race can be seen to hold the lock while it is in the queue still. An explicit owner's takes the
// lock and leaves the queue in one go.
var racing = shifting[:2]

func TestAReleaseBeforeTheWinnerOfARaceHasLeftTheQueueWakesTheNextWaiter(t *testing.T) {
	for _, p := range racing {
		t.Run(fmt.Sprint(int64(p.value)), func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Owned(1)))
			winner := run(func() bool { return s.Lock(p, NonFair) })
			eventually(t, func() bool { return s.Len() == 1 })
			next := run(func() bool { return s.Lock(Owned(3), NonFair) })
			eventually(t, func() bool { return s.Len() == 2 })

			s.guard.Lock()
			unpark(s.release(NonFair, 0))
			eventually(t, func() bool { return s.Word.Load()&^flags == p.value })
			unpark(s.release(NonFair, 0)) // the winner waits for the guard, to leave the queue
			s.guard.Unlock()

			require.True(t, winner.result(t))
			require.True(t, next.result(t))
			require.True(t, s.Unlock(NonFair))
			require.NoError(t, s.Verify())
			require.Zero(t, s.Word.Load())
		})
	}
}

func TestAHoldThatIsOverBeforeTheWaiterThatWasHandedItNoticesIsNotTakenAgain(t *testing.T) {
	for _, p := range shifting {
		for _, others := range []int{0, 1} {
			t.Run(fmt.Sprint(int64(p.value), others), func(t *testing.T) {
				var s Sync
				require.True(t, s.TryLock(Owned(1)))
				heir := run(func() bool { return s.Lock(p, NonFair) })
				eventually(t, func() bool { return s.Len() == 1 })
				var next call
				if others > 0 {
					next = run(func() bool { return s.Lock(Owned(3), NonFair) })
					eventually(t, func() bool { return s.Len() == 2 })
				}

				s.guard.Lock()
				s.Word.Or(handoff)
				handed := s.release(NonFair, 0)
				roused := s.release(NonFair, 0)
				s.guard.Unlock()
				unpark(handed)
				require.True(t, heir.result(t))
				unpark(roused)

				if others > 0 {
					require.True(t, next.result(t))
					require.True(t, s.Unlock(NonFair))
				}
				require.NoError(t, s.Verify())
				require.Zero(t, s.Word.Load())
			})
		}
	}
}

func TestAWinnerThatIsHandedTheLockAsWellGivesOneOfTheTwoBack(t *testing.T) {
	for _, p := range racing {
		t.Run(fmt.Sprint(int64(p.value)), func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Owned(1)))
			winner := run(func() bool { return s.Lock(p, NonFair) })
			eventually(t, func() bool { return s.Len() == 1 })

			s.guard.Lock()
			unpark(s.release(NonFair, 0))
			eventually(t, func() bool { return s.Word.Load()&^flags == p.value })
			unpark(s.release(NonFair, 0)) // the winner's, which waits for the guard
			require.True(t, s.TryLock(Owned(1)))
			s.Word.Or(handoff)
			unpark(s.release(NonFair, 0)) // to the winner, which is in the queue still
			s.guard.Unlock()

			require.True(t, winner.result(t))
			require.NoError(t, s.Verify())
			require.Zero(t, s.Word.Load(), "it won once, and that hold was given back")
		})
	}
}

func TestAGoroutineOfAnOwnerThatGotTheLockMeanwhileDoesNotQueue(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(-5)))
	n := newNode(Owned(-5), false)
	require.False(t, s.enqueue(n, NonFair))
	n.recycle()
	require.Equal(t, 2, s.WriteHolds(-5))
	require.True(t, s.Leave(-5, NonFair))
	require.True(t, s.Leave(-5, NonFair))
	require.Zero(t, s.Word.Load())
}

func TestALockThatIsHandedOverIsOwedToTheNextOneTooIfThatIsOverdue(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	heir := run(func() bool { return s.Lock(Owned(2), NonFair) })
	eventually(t, func() bool { return s.Len() == 1 })
	stop := make(chan struct{})
	next := run(func() bool { return s.waitLimited(newNode(Owned(3), false), NonFair, limit{ctx: stop}) })
	eventually(t, func() bool { return s.Len() == 2 })
	last := run(func() bool { return s.Lock(Owned(4), NonFair) })
	eventually(t, func() bool { return s.Len() == 3 })
	time.Sleep(2 * maxBarging)
	s.guard.Lock()
	s.Word.Or(handoff)
	s.guard.Unlock()

	require.True(t, s.Unlock(NonFair))
	require.True(t, heir.result(t))
	require.Equal(t, value(2)|queued|handoff, s.Word.Load())
	close(stop)
	require.False(t, next.result(t))
	require.Equal(t, value(2)|queued, s.Word.Load(), "it was owed to the one that gave up")
	require.True(t, s.Unlock(NonFair))
	require.True(t, last.result(t))
	require.True(t, s.Unlock(NonFair))
	require.Zero(t, s.Word.Load())
}

// The word of a lock without owners is the same before and after a hand-over, but for what it says of those who wait.
func TestALockWithoutOwnersThatIsHandedOverOwesNothingToTheNextOne(t *testing.T) {
	for _, said := range []uint64{handoff, handoff | woken} {
		var s Sync
		require.True(t, s.TryLock(Anonymous(1)))
		var waiters []call
		for i := range 2 {
			waiters = append(waiters, run(func() bool { return s.Lock(Anonymous(int64(i+2)), NonFair) }))
			eventually(t, func() bool { return s.Len() == i+1 })
		}
		s.guard.Lock()
		s.queue.tail.since = now() + time.Hour // it is not overdue
		s.Word.Or(said)
		s.guard.Unlock()

		require.True(t, s.Unlock(NonFair))
		require.True(t, waiters[0].result(t))
		require.Equal(t, Taken|queued, s.Word.Load())
		require.True(t, s.Unlock(NonFair))
		require.True(t, waiters[1].result(t))
		require.True(t, s.Unlock(NonFair))
		require.NoError(t, s.Verify())
		require.Zero(t, s.Word.Load())
	}
}

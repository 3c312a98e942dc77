package syncq

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Any goroutine that sees a lock without owners held can release it, even while the waiter that
// got it is still on its way. So it is with the hold of an explicit owner.

var parties = []Party{Anonymous(7), Owned(7), Owned(-7)}

func TestAWinnerLeavesTheQueueInTheSameStep(t *testing.T) {
	for _, p := range parties {
		t.Run(fmt.Sprint(int64(p.value)), func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Owned(1)))
			winner := waits(t, &s, p, NonFair, 1, nil)
			next := waits(t, &s, Owned(3), NonFair, 2, nil)

			s.guard.Lock()
			patient(&s)
			require.True(t, s.Word.CompareAndSwap(Value(1)|queued, queued|woken))
			wake, ok := s.advance(NonFair, keep)
			require.True(t, ok)
			unpark(wake)
			atGuard(t, 1, "syncq.(*Sync).compete")
			require.Equal(t, queued|woken, s.Word.Load(), "no word names a holder that is in the queue still")
			require.EqualValues(t, 7, abs(s.queue.head.who))
			s.guard.Unlock()

			require.True(t, winner.result(t))
			require.Equal(t, []int64{3}, s.Waiters())
			require.Equal(t, p.value, s.Word.Load()&^about)
			require.NoError(t, s.Verify())
			require.True(t, s.Unlock(NonFair))
			require.True(t, next.result(t))
			require.True(t, s.Unlock(NonFair))
			idle(t, &s)
		})
	}
}

func abs(n int64) int64 { return max(n, -n) }

func TestAHoldThatEndsBeforeItsWaiterRunsIsOver(t *testing.T) {
	for _, p := range parties {
		for _, others := range []int{0, 1} {
			t.Run(fmt.Sprint(int64(p.value), others), func(t *testing.T) {
				var s Sync
				require.True(t, s.TryLock(Owned(1)))
				first := waits(t, &s, p, NonFair, 1, nil)
				var next call
				if others > 0 {
					next = waits(t, &s, Owned(3), NonFair, 2, nil)
				}

				s.guard.Lock()
				s.queue.head.owed = true
				granted, ok := s.advance(NonFair, drop)
				require.True(t, ok)
				require.Equal(t, p.value, s.Word.Load()&^about)
				woken, ok := s.advance(NonFair, drop)
				require.True(t, ok)
				s.guard.Unlock()
				unpark(granted)
				require.True(t, first.result(t))
				unpark(woken)

				if others > 0 {
					require.True(t, next.result(t))
					require.True(t, s.Unlock(NonFair))
				}
				require.False(t, s.Unlock(NonFair))
				idle(t, &s)
			})
		}
	}
}

// The waiter has been woken to race. Before it runs another goroutine takes the lock, and its
// release finds the waiter owed the lock.
func TestAnAwakeWaiterHandedTheLockTakesItOnce(t *testing.T) {
	for _, p := range parties {
		t.Run(fmt.Sprint(int64(p.value)), func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Owned(1)))
			n, permit := enqueued(t, &s, p)
			require.True(t, s.Unlock(NonFair))
			<-permit // the waiter runs, and is about to race
			require.True(t, s.TryLock(Owned(1)))
			n.owed = true
			require.True(t, s.guarded(NonFair, drop))
			require.Equal(t, p.value, s.Word.Load())
			require.True(t, s.compete(n))
			require.Empty(t, permit, "a second permit would be left for the next one that uses the node")
			require.Zero(t, s.Len())
			n.recycle()
			require.True(t, s.Unlock(NonFair))
			idle(t, &s)
		})
	}
}

func TestALockIsOwedToAnOverdueNextWaiter(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	first := waits(t, &s, Owned(2), NonFair, 1, nil)
	stop := make(chan struct{})
	next := waits(t, &s, Owned(3), NonFair, 2, stop)
	last := waits(t, &s, Owned(4), NonFair, 3, nil)
	s.guard.Lock()
	s.queue.head.owed, s.queue.head.next.since = true, due
	s.queue.tail.since = now() + time.Hour
	s.advance(NonFair, keep)
	s.guard.Unlock()

	require.True(t, s.Unlock(NonFair))
	require.True(t, first.result(t))
	require.Equal(t, Value(2)|queued|handoff, s.Word.Load())
	close(stop)
	require.False(t, next.result(t))
	require.Equal(t, Value(2)|queued, s.Word.Load(), "it was owed to the one that gave up")
	require.True(t, s.Unlock(NonFair))
	require.True(t, last.result(t))
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

// The word of a lock without owners is the same before and after a hand-over, except for its flags.
func TestAHandOverOwesNothingToTheNextWaiter(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Anonymous(1)))
	var waiters []call
	for i := range 2 {
		waiters = append(waiters, waits(t, &s, Anonymous(int64(i+2)), NonFair, i+1, nil))
	}
	s.guard.Lock()
	s.queue.tail.since = now() + time.Hour // it is not overdue
	s.queue.head.owed = true
	s.advance(NonFair, keep)
	s.guard.Unlock()
	require.Equal(t, Taken|queued|handoff, s.Word.Load())

	require.True(t, s.Unlock(NonFair))
	require.True(t, waiters[0].result(t))
	require.Equal(t, Taken|queued, s.Word.Load())
	require.True(t, s.Unlock(NonFair))
	require.True(t, waiters[1].result(t))
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

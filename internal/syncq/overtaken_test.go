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

func TestWinnerLeavesTheQueueInTheSameStep(t *testing.T) {
	for _, p := range parties {
		t.Run(fmt.Sprint(int64(p.value)), func(t *testing.T) {
			var s ReadWrite
			require.True(t, s.TryLock(Owned(1)))
			winner := queueAs(t, &s, p, 1, nil)
			next := queueAs(t, &s, Owned(3), 2, nil)

			s.guard.Lock()
			patient(&s)
			require.True(t, s.Word.CompareAndSwap(Value(1)|flagQueued, flagQueued|flagWoken))
			wake, ok := s.advance(keep)
			require.True(t, ok)
			unpark(wake)
			atGuard(t, 1, "syncq.(*node).compete")
			require.Equal(t, flagQueued|flagWoken, s.Word.Load(), "no word names a holder that is in the queue still")
			require.EqualValues(t, 7, abs(s.queue.head.who))
			s.guard.Unlock()

			require.True(t, winner.result(t))
			require.Equal(t, []int64{3}, s.Waiters())
			require.Equal(t, p.value, s.Word.Load()&^queueFlags)
			require.NoError(t, s.Verify())
			require.True(t, s.Unlock())
			require.True(t, next.result(t))
			require.True(t, s.Unlock())
			idle(t, &s)
		})
	}
}

func abs(n int64) int64 { return max(n, -n) }

func TestAHoldMayEndBeforeItsWaiterRuns(t *testing.T) {
	for _, p := range parties {
		for _, others := range []int{0, 1} {
			t.Run(fmt.Sprint(int64(p.value), others), func(t *testing.T) {
				var s ReadWrite
				require.True(t, s.TryLock(Owned(1)))
				first := queueAs(t, &s, p, 1, nil)
				var next asyncCall
				if others > 0 {
					next = queueAs(t, &s, Owned(3), 2, nil)
				}

				s.guard.Lock()
				s.queue.head.reserved = true
				wake, ok := s.advance(drop)
				require.True(t, ok)
				require.Equal(t, p.value, s.Word.Load()&^queueFlags)
				woken, ok := s.advance(drop)
				require.True(t, ok)
				s.guard.Unlock()
				unpark(wake)
				require.True(t, first.result(t))
				unpark(woken)

				if others > 0 {
					require.True(t, next.result(t))
					require.True(t, s.Unlock())
				}
				require.False(t, s.Unlock())
				idle(t, &s)
			})
		}
	}
}

// The waiter has been woken to race. Before it runs another goroutine takes the lock, and its
// release finds the lock reserved for the waiter.
func TestAwakeWaiterHandedTheLockTakesItOnce(t *testing.T) {
	for _, p := range parties {
		t.Run(fmt.Sprint(int64(p.value)), func(t *testing.T) {
			var s ReadWrite
			require.True(t, s.TryLock(Owned(1)))
			n, permit := enqueued(t, &s, p)
			require.True(t, s.Unlock())
			<-permit // the waiter runs, and is about to race
			require.True(t, s.TryLock(Owned(1)))
			n.reserved = true
			require.True(t, s.guarded(drop))
			require.Equal(t, p.value, s.Word.Load())
			require.True(t, n.compete())
			require.Empty(t, permit, "a second permit would be left for the next one that uses the node")
			require.Zero(t, s.Len())
			n.recycle()
			require.True(t, s.Unlock())
			idle(t, &s)
		})
	}
}

func TestAnOverdueNextWaiterHasTheLockReserved(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	first := queueAs(t, &s, Owned(2), 1, nil)
	stop := make(chan struct{})
	next := queueAs(t, &s, Owned(3), 2, stop)
	last := queueAs(t, &s, Owned(4), 3, nil)
	s.guard.Lock()
	s.queue.head.reserved, s.queue.head.next.since = true, due
	s.queue.tail.since = clock() + time.Hour
	s.advance(keep)
	s.guard.Unlock()

	require.True(t, s.Unlock())
	require.True(t, first.result(t))
	require.Equal(t, Value(2)|flagQueued|flagReserved, s.Word.Load())
	close(stop)
	require.False(t, next.result(t))
	require.Equal(t, Value(2)|flagQueued, s.Word.Load(), "it was reserved for the waiter that gave up")
	require.True(t, s.Unlock())
	require.True(t, last.result(t))
	require.True(t, s.Unlock())
	idle(t, &s)
}

// The word of a lock without owners is the same before and after a hand-over, except for its flags.
func TestAHandOffReservesNothingForTheNext(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Anonymous(1)))
	var waiters []asyncCall
	for i := range 2 {
		waiters = append(waiters, queueAs(t, &s, Anonymous(int64(i+2)), i+1, nil))
	}
	s.guard.Lock()
	s.queue.tail.since = clock() + time.Hour // it is not overdue
	s.queue.head.reserved = true
	s.advance(keep)
	s.guard.Unlock()
	require.Equal(t, Taken|flagQueued|flagReserved, s.Word.Load())

	require.True(t, s.Unlock())
	require.True(t, waiters[0].result(t))
	require.Equal(t, Taken|flagQueued, s.Word.Load())
	require.True(t, s.Unlock())
	require.True(t, waiters[1].result(t))
	require.True(t, s.Unlock())
	idle(t, &s)
}

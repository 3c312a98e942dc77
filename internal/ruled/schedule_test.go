package ruled

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

type permits struct{}

func (permits) Acquire(free, n uint64) (uint64, bool) { return free - n, free >= n }
func (permits) Release(free, n uint64) (uint64, bool) { return free + n, true }

// inOrder checks Q, A and C of advance.
func inOrder(t *testing.T, s *Sync[permits]) {
	t.Helper()
	s.guard.Lock()
	defer s.guard.Unlock()
	var gate uint32
	if first := s.queue.head; first != nil {
		gate = queued
		if first.state == racing && !first.reserved {
			gate |= awake
		}
		if first.reserved {
			gate |= closed
		}
	}
	require.Equal(t, gate, s.gate.Load(), "queued is 1, awake is 2, closed is 4")
}

// waits returns a waiter for arg that the test plays itself. Its permits are in its channel.
func waits(t *testing.T, s *Sync[permits], arg uint64) *Node {
	t.Helper()
	n := &Node{arg: arg, who: 7}
	n.place.Open()
	s.enqueue(n)
	require.Empty(t, n.Permits())
	require.Equal(t, waiting, n.state)
	inOrder(t, s)
	return n
}

// unparked takes the permit of n, which must be there.
func unparked(t *testing.T, n *Node) {
	t.Helper()
	require.Len(t, n.Permits(), 1)
	<-n.Permits()
}

func TestTheFirstWaiterThatLeavesLetsTheNextOneLook(t *testing.T) {
	for _, barges := range []bool{false, true} {
		var s Sync[permits]
		s.Init(permits{}, 3, barges)
		first, second, last := waits(t, &s, 5), waits(t, &s, 3), waits(t, &s, 9)
		require.Equal(t, syncq.Ended, s.Leave(first))
		inOrder(t, &s)
		unparked(t, second)
		require.True(t, !barges || s.compete(second))
		require.Equal(t, syncq.Acquired, second.Outcome())
		inOrder(t, &s)
		require.Equal(t, syncq.Ended, s.Leave(last))
		inOrder(t, &s)
		require.Zero(t, s.Word())
	}
}

func TestAWaiterThatLeavesAfterItWasWokenWakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes
		var s Sync[permits]
		s.Init(permits{}, 0, true)
		first, second := waits(t, &s, 2), waits(t, &s, 3)
		require.True(t, s.Release(3))
		inOrder(t, &s)
		require.Equal(t, racing, first.state)
		require.Empty(t, second.Permits())
		require.Equal(t, syncq.Ended, s.Leave(first))
		require.Empty(t, first.Permits(), "it has taken the permit")
		inOrder(t, &s)
		unparked(t, second)
		require.True(t, s.compete(second))
		inOrder(t, &s)
	})
}

func TestTheWordIsKeptForAWaiterThatHasLostEnoughRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes
		var s Sync[permits]
		s.Init(permits{}, 0, true)
		n := waits(t, &s, 1)
		for range syncq.MaxLost {
			require.True(t, s.Release(1))
			inOrder(t, &s)
			require.True(t, s.TryAcquire(1), "a newcomer is faster")
			unparked(t, n)
			require.False(t, s.compete(n))
			inOrder(t, &s)
		}
		require.True(t, s.Release(1))
		require.False(t, s.TryAcquire(1))
		unparked(t, n)
		require.True(t, s.compete(n))
		inOrder(t, &s)
		require.Equal(t, syncq.Acquired, n.Outcome())
	})
}

func TestRefusedWaitersLeaveAndAdmitTheNext(t *testing.T) {
	for _, barges := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s Sync[permits]
			s.Init(permits{}, 0, barges)
			outcomes := make([]syncq.Outcome, 4)
			for i, n := range []uint64{9, 3, 8, 2} {
				go func() { outcomes[i] = s.Wait(n, 0, nil) }()
				synctest.Wait()
			}
			s.Release(5)
			s.Refuse(func(n uint64) bool { return n > 5 })
			synctest.Wait()
			require.Equal(t, []syncq.Outcome{syncq.Refused, syncq.Acquired, syncq.Refused, syncq.Acquired}, outcomes)
			require.Zero(t, s.Word())
			require.False(t, s.HasQueued())
			require.Equal(t, syncq.Refused, s.Wait(6, 0, nil), "later waits too")
		})
	}
}

func TestARefusedWaitThatItsCallerSelectsGetsOnePermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[permits]
		s.Init(permits{}, 0, false)
		s.Refuse(func(n uint64) bool { return n > 5 })
		told := s.Begin(6, 7)
		<-told.Permits()
		require.Equal(t, syncq.Refused, told.Outcome())
		ended := s.Begin(6, 7)
		require.Equal(t, syncq.Refused, s.Leave(ended), "also if its limit has ended")
		require.Empty(t, ended.Permits())
		require.False(t, s.HasQueued())
	})
}

func TestLeaverAwaitsTheUnparkOfItsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[permits]
		n := &Node{arg: 1, who: 7}
		n.place.Open()
		s.guard.Lock()
		s.queue.push(n)
		s.advance()
		s.guard.Unlock()

		s.word.Store(1)
		s.guard.Lock()
		wake := s.advance() // a release that has still to unpark
		s.guard.Unlock()
		left := false
		go func() {
			require.Equal(t, syncq.Acquired, s.Leave(n))
			left = true
		}()
		synctest.Wait()
		require.False(t, left)
		unpark(wake)
		synctest.Wait()
		require.True(t, left)
	})
}

package ruled

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

// crossed are rules that call between, once, while they decide about a waiter.
type crossed struct{ between *func() }

func (c crossed) Acquire(free, n uint64) (uint64, bool) {
	if f := *c.between; f != nil {
		*c.between = nil
		f()
	}
	return free - n, free >= n
}

func (crossed) Release(free, n uint64) (uint64, bool) { return free + n, true }

func TestAWaiterIsAdmittedAlthoughTheWordChangesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[crossed]
		var between func()
		s.Init(crossed{&between}, 0, false)
		outcome := syncq.Refused
		go func() { outcome = s.Wait(1, 0, nil) }()
		synctest.Wait()
		between = func() { s.word.Add(2) } // as by another release, which finds the guard taken
		s.Release(1)
		synctest.Wait()
		require.Equal(t, syncq.Acquired, outcome, "nobody else would wake the waiter")
		require.EqualValues(t, 2, s.Word())
		require.False(t, s.HasQueued())
	})
}

func TestAWaiterThatMeetsAnotherAcquisitionRacesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[crossed]
		var between func()
		s.Init(crossed{&between}, 0, true)
		n := &Node{arg: 1, who: 7}
		n.place.Open()
		s.enqueue(n)
		require.True(t, s.Release(2))
		<-n.Permits()
		between = func() { s.word.Add(^uint64(0)) } // as by an acquisition
		require.False(t, s.compete(n))
		require.Equal(t, racing, n.state)
		<-n.Permits()
		require.True(t, s.compete(n))
		require.Zero(t, s.Word())
		require.False(t, s.HasQueued())
	})
}

func TestAWaiterThatIsAdmittedAtItsSecondLookKeepsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[crossed]
		var between func()
		s.Init(crossed{&between}, 0, true)
		n := &Node{arg: 1, who: 7, lost: syncq.MaxLost - 1}
		n.place.Open()
		s.enqueue(n)
		require.True(t, s.Release(1))
		<-n.Permits()
		require.True(t, s.TryAcquire(1))
		between = func() { s.word.Add(1) } // as by a release that leaves the rest to the awake waiter
		require.True(t, s.compete(n))
		require.Equal(t, syncq.Acquired, n.Outcome())
		require.Empty(t, n.Permits(), "its node is used again")
		require.False(t, s.HasQueued())
	})
}

package syncq

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// awakened returns a lock that is free, with an awake waiter that the test plays.
func awakened(t *testing.T, s *ReadWrite) *node {
	t.Helper()
	require.True(t, s.TryLock(Anonymous(1)))
	n, permit := enqueued(t, s, Anonymous(2))
	require.True(t, s.Unlock())
	<-permit
	require.Equal(t, Awake, s.Word.Load())
	return n
}

func TestALockThatIsFreeAgainIsNotReserved(t *testing.T) {
	var s ReadWrite
	n := awakened(t, &s)
	n.since = due
	s.reserveOverdue()
	require.Equal(t, Awake, s.Word.Load())
	require.False(t, n.reserved)
	require.True(t, n.compete())
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestNoLockIsReservedForAWaiterThatLeft(t *testing.T) {
	var s ReadWrite
	n := awakened(t, &s)
	n.since = due
	require.True(t, s.TryLock(Anonymous(3)))
	s.guard.Lock()
	unpark(n.cancel())
	s.guard.Unlock()
	s.reserveOverdue()
	require.Equal(t, Taken, s.Word.Load())
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestAnOvertakerDoesNotWaitForTheGuard(t *testing.T) {
	var s ReadWrite
	n := awakened(t, &s)
	n.since = due
	s.guard.Lock()
	overtaken := run(func() bool {
		for range BargedRounds {
			if !s.TryLock(Anonymous(3)) || !s.Word.CompareAndSwap(Awake|Taken, Awake) {
				return false
			}
		}
		return true
	})
	require.True(t, overtaken.result(t))
	s.guard.Unlock()
	require.True(t, n.compete())
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestAReservedWaiterThatRunsLateSleepsOnAReservedWord(t *testing.T) {
	var s ReadWrite
	n := awakened(t, &s)
	n.since = due
	require.True(t, s.TryLock(Anonymous(3)))
	s.reserveOverdue()
	require.Equal(t, Taken|flagQueued|flagReserved, s.Word.Load())
	require.False(t, n.compete())
	require.Equal(t, Taken|flagQueued|flagReserved, s.Word.Load())
	require.NoError(t, s.Verify())
	require.True(t, s.Unlock())
	<-n.place.Permits()
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestTheBoundOfBargingGrowsWithTheQueue(t *testing.T) {
	for length, bound := range map[int32]struct{ within, beyond time.Duration }{
		1:       {-time.Hour, MaxBarging},
		127:     {-time.Hour, MaxBarging},
		1 << 30: {2 * time.Hour, 3 * time.Hour},
	} {
		var s ReadWrite
		n := s.newNode(Owned(2), false)
		s.queue.len = length
		n.since = clock() - bound.within
		require.False(t, n.overdue(), length)
		n.since = clock() - bound.beyond
		require.True(t, n.overdue(), length)
		n.recycle()
	}
}

// A goroutine that hands over yields, so that the new holder runs before it goes on.
func TestAHandOverToAnOverdueWriterYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	first := 0
	const rounds = 20 // the scheduler now and then lets another goroutine run first
	for range rounds {
		var s ReadWrite
		require.True(t, s.TryLock(Anonymous(1)))
		ran := false // guarded by the lock, and there is one processor
		waiter := run(func() bool {
			s.Lock(Anonymous(2))
			ran = true
			return s.Unlock()
		})
		testbed.Await(t, func() bool { return s.Len() == 1 })
		s.guard.Lock()
		s.queue.head.reserved = true
		s.advance(keep)
		s.guard.Unlock()
		require.True(t, s.Unlock())
		if !s.Held() && s.TryLock(Anonymous(3)) {
			if ran {
				first++
			}
			s.Unlock()
		}
		require.True(t, waiter.result(t))
	}
	require.Greater(t, first, rounds/2)
}

func TestAWriterSpinsForFewReaders(t *testing.T) {
	var s ReadWrite
	s.queue.marks.set(crowded)
	for readers, spins := range map[int]bool{1: true, SpinReaders: true, SpinReaders + 1: false} {
		word := uint64(readers)*oneHold | flagShared
		require.Equal(t, spins, s.worthSpinning(word), readers)
		require.Equal(t, spins, s.worthSpinning(word|Awake), readers)
		require.False(t, s.worthSpinning(word|flagQueued|flagReserved), readers)
		require.False(t, s.worthSpinning(word|flagVisible), "the table has one of the holds")
	}
}

func TestAWriterSpinsForReadersOnceTwoHaveWaited(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	for o := int64(2); o <= 3; o++ {
		require.False(t, s.worthSpinning(OneShared), "fewer than two have waited")
		require.True(t, s.worthSpinning(Value(7)), "for a writer it spins anyway")
		waiter := run(func() bool { return s.AcquireRead(Owned(o), nil) == Acquired })
		defer func() { require.True(t, waiter.result(t) && s.ReleaseRead(o)) }()
		testbed.Await(t, func() bool { return s.Len() == int(o)-1 })
	}
	require.True(t, s.worthSpinning(OneShared))
	require.True(t, s.Release(1))
}

func TestSpinsInVainAreShorterUntilOneSucceeds(t *testing.T) {
	defer func(was bool) { spins = was }(spins)
	spins = true
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	for range 2 * maxFailed {
		require.False(t, s.Spin(Owned(2)))
	}
	require.EqualValues(t, maxFailed, s.queue.failed.load())
	require.True(t, s.Unlock())
	require.True(t, s.Spin(Owned(2)), "one round is left")
	require.Zero(t, s.queue.failed.load())
	require.True(t, s.Unlock())
	idle(t, &s)
}

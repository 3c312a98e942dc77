package rwlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

// Writers that take the lock past an awake waiter which gets no processor. The tests play that
// waiter.

// wokenLate returns a free lock, and its first waiter, a writer that was woken after d and has not
// run since.
func wokenLate(t *testing.T, d time.Duration) (l *StampedLock, n *stampedWaiter) {
	t.Helper()
	l = new(StampedLock)
	held := l.WriteLock()
	n = waits(l, true)
	time.Sleep(d)
	l.UnlockWrite(held)
	require.True(t, n.woken)
	return l, n
}

// barge takes a write hold n times, past the waiters, and gives it back.
func barge(t *testing.T, l *StampedLock, n int) {
	t.Helper()
	for range n {
		st := l.spinWrite()
		require.NotZero(t, st)
		l.UnlockWrite(st)
	}
}

func TestAStampedLockIsReservedForAnAwakeWriterThatGetsNoProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, n := wokenLate(t, syncq.MaxBarging)
		barge(t, l, syncq.BargedRounds-1)
		held := l.spinWrite()
		require.True(t, StampedReserved(l))
		l.UnlockWrite(held)
		require.Zero(t, l.spinWrite(), "no writer comes before it any more")
		l.UnlockWrite(asks(t, l, n))
		require.False(t, StampedReserved(l))
		barge(t, l, 1)
	})
}

func TestAReservedStampedWriterThatRunsLateWaitsForTheBarger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, n := wokenLate(t, syncq.MaxBarging)
		barge(t, l, syncq.BargedRounds-1)
		held := l.spinWrite()
		require.Zero(t, asks(t, l, n))
		require.True(t, StampedReserved(l))
		l.UnlockWrite(held)
		l.UnlockWrite(asks(t, l, n))
		require.False(t, l.HasQueued())
	})
}

func TestAReservedStampedWriterThatGivesUpKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, n := wokenLate(t, syncq.MaxBarging)
		barge(t, l, syncq.BargedRounds)
		st, over := l.look(n, true)
		require.True(t, over)
		require.Zero(t, st)
		require.NoError(t, VerifyStamped(l))
		barge(t, l, 1)
	})
}

func TestAStampedLockIsNotReservedForAShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, n := wokenLate(t, syncq.MaxBarging-1)
		barge(t, l, 2*syncq.BargedRounds)
		require.False(t, StampedReserved(l))
		l.UnlockWrite(asks(t, l, n))
	})
}

func TestALongQueueMakesStampedWritersOverdueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, n := wokenLate(t, syncq.MaxBarging)
		for range syncq.LongQueue {
			waits(l, true)
		}
		barge(t, l, syncq.BargedRounds)
		require.False(t, StampedReserved(l))
		time.Sleep(syncq.MaxBarging)
		barge(t, l, syncq.BargedRounds)
		require.True(t, StampedReserved(l))
		require.True(t, n.reserved)
	})
}

func TestAStampedBargerDoesNotWaitForTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, n := wokenLate(t, syncq.MaxBarging)
		l.guard.Lock()
		barge(t, l, syncq.BargedRounds)
		l.guard.Unlock()
		require.False(t, n.reserved)
		l.UnlockWrite(asks(t, l, n))
	})
}

// The waiter's clock begins when it joins, so that a writer behind others is overdue when it
// becomes the first.
func TestTheWaitOfAStampedWriterCountsFromItsArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l StampedLock
		held := l.WriteLock()
		first, second := waits(&l, true), waits(&l, true)
		time.Sleep(syncq.MaxBarging)
		l.UnlockWrite(held)
		held = asks(t, &l, first)
		require.True(t, StampedReserved(&l))
		l.UnlockWrite(held)
		require.True(t, second.woken)
		require.Zero(t, l.spinWrite(), "no writer comes before it")
		l.UnlockWrite(asks(t, &l, second))
		require.False(t, StampedReserved(&l))
	})
}

func TestAStampedWriterThatHasWaitedLongIsReservedAtItsFirstLostRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, n := wokenLate(t, syncq.MaxBarging)
		held := l.TryWriteLock()
		require.Zero(t, asks(t, l, n))
		require.True(t, StampedReserved(l))
		l.UnlockWrite(held)
		l.UnlockWrite(asks(t, l, n))
	})
}

// A reader has no clock before it has lost for the first time.
func TestAStampedLockIsNotReservedForAReadersShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l StampedLock
		held := l.WriteLock()
		reader, writer := waits(&l, false), waits(&l, true)
		l.UnlockWrite(held)
		require.True(t, reader.woken)
		barge(t, &l, 2*syncq.BargedRounds)
		require.False(t, StampedReserved(&l))
		l.UnlockRead(asks(t, &l, reader))
		l.UnlockWrite(asks(t, &l, writer))
	})
}

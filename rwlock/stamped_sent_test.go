package rwlock

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

// Readers that are sent: a release that frees the lock, and for which only readers wait, tells them
// to ask again. The tests play the waiters.

// sending is a StampedLock that is held for writing, and whose release sends readers, whatever the
// number of processors.
func sending(t *testing.T) (l *StampedLock, held Stamp) {
	was := spins
	spins = true
	t.Cleanup(func() { spins = was })
	l = new(StampedLock)
	return l, l.WriteLock()
}

func waits(l *StampedLock, write bool) *stampedWaiter {
	n := &stampedWaiter{write: write}
	n.place.Init()
	l.join(n)
	return n
}

// asks plays a waiter that was unparked. It returns its hold, or 0 if the waiter waits again.
func asks(t *testing.T, l *StampedLock, n *stampedWaiter) Stamp {
	t.Helper()
	n.place.Park()
	st, over := l.look(n, false)
	require.Equal(t, st != 0, over)
	require.NoError(t, VerifyStamped(l))
	return st
}

func TestAReleaseFreesAStampedLockForWhichOnlyReadersWait(t *testing.T) {
	l, held := sending(t)
	a, b := waits(l, false), waits(l, false)
	l.UnlockWrite(held)
	require.NoError(t, VerifyStamped(l))
	require.False(t, l.IsReadLocked(), "no reader holds the lock before it runs")
	require.False(t, l.HasQueued())
	for _, n := range []*stampedWaiter{b, a} {
		l.UnlockRead(asks(t, l, n))
	}
}

func TestStampedReadersThatWereOvertakenAskAgain(t *testing.T) {
	l, held := sending(t)
	a, b := waits(l, false), waits(l, false)
	l.UnlockWrite(held)
	held = l.WriteLock()
	require.Zero(t, asks(t, l, a))
	require.Zero(t, asks(t, l, b))
	require.Equal(t, 2, l.QueueLength())
	l.UnlockWrite(held)
	l.UnlockRead(asks(t, l, a))
	l.UnlockRead(asks(t, l, b))
}

func TestStampedReadersBeforeAWriterAreNotSent(t *testing.T) {
	l, held := sending(t)
	a, b, w := waits(l, false), waits(l, false), waits(l, true)
	l.UnlockWrite(held)
	require.Equal(t, 3, l.QueueLength())
	first := asks(t, l, a)
	require.NotZero(t, b.granted, "both enter")
	l.UnlockRead(first)
	l.UnlockRead(asks(t, l, b))
	l.UnlockWrite(asks(t, l, w))
}

// The time does not count: the reader spends most of it without a processor.
func TestAStampedReaderSentInVainTooOftenHasTheLockReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, held := sending(t)
		n := waits(l, false)
		for range syncq.MaxLost {
			require.False(t, StampedReserved(l))
			time.Sleep(time.Hour)
			l.UnlockWrite(held)
			require.False(t, l.HasQueued(), "it is sent")
			held = l.WriteLock()
			require.Zero(t, asks(t, l, n))
		}
		fresh := waits(l, false)
		require.True(t, StampedReserved(l))
		l.UnlockWrite(held)
		require.Zero(t, l.spinWrite(), "no writer comes before it any more")
		l.UnlockRead(asks(t, l, n))
		require.NotZero(t, fresh.granted, "and all readers enter with it")
		l.UnlockRead(asks(t, l, fresh))
		require.False(t, l.IsReadLocked())
	})
}

func TestAStampedWriterSpinsForFewReadersOnceThreeHaveWaited(t *testing.T) {
	l, held := sending(t)
	require.True(t, l.worthSpinning(), "for a writer it spins anyway")
	a, b := waits(l, false), waits(l, false)
	l.UnlockWrite(held)
	for _, n := range []*stampedWaiter{a, b} {
		st := asks(t, l, n)
		require.False(t, l.worthSpinning(), "only two have waited")
		l.UnlockRead(st)
	}

	held = l.WriteLock()
	a, b, c := waits(l, false), waits(l, false), waits(l, false)
	l.UnlockWrite(held)
	var readers []Stamp
	for i, n := range []*stampedWaiter{a, b, c} {
		readers = append(readers, asks(t, l, n))
		require.Equal(t, i < syncq.SpinReaders, l.worthSpinning(), i)
	}
	for _, st := range readers {
		l.UnlockRead(st)
	}
}

func TestAnOverdueStampedReaderBehindOthersHasTheLockReserved(t *testing.T) {
	l, held := sending(t)
	fresh, late := waits(l, false), &stampedWaiter{reserved: true}
	late.place.Init()
	l.join(late)
	require.NoError(t, VerifyStamped(l))
	l.UnlockWrite(held)
	require.Zero(t, l.spinWrite())
	l.UnlockRead(asks(t, l, fresh))
	l.UnlockRead(asks(t, l, late))
	require.NoError(t, VerifyStamped(l))
	l.UnlockWrite(l.WriteLock())
}

// The limit ends after a release has sent the reader, and before the reader has seen that.
func TestAStampedReaderWhoseLimitEndsWhenItIsSentAsksOnce(t *testing.T) {
	for _, overtaken := range []bool{false, true} {
		l, held := sending(t)
		n := waits(l, false)
		l.UnlockWrite(held)
		if overtaken {
			held = l.WriteLock()
		}
		st, over := l.look(n, true)
		require.True(t, over)
		require.Equal(t, overtaken, st == 0)
		require.Zero(t, l.QueueLength())
		if overtaken {
			l.UnlockWrite(held)
		} else {
			l.UnlockRead(st)
		}
		require.NoError(t, VerifyStamped(l))
	}
}

// Writers that come and go overtake readers, some of which give up.
func TestSentStampedReadersLoseNoWakeUp(t *testing.T) {
	l, held := sending(t)
	l.UnlockWrite(held)
	var x, y int
	var wg sync.WaitGroup
	for g := range uint64(12) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, g))
			for range 1500 {
				var st Stamp
				switch random.IntN(4) {
				case 0:
					st = l.WriteLock()
					x++
					y++
				case 1:
					st = l.TryReadLockFor(time.Duration(random.IntN(50)) * time.Microsecond)
				case 2:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(50))*time.Microsecond)
					st, _ = l.ReadLockContext(ctx)
					cancel()
				default:
					st = l.ReadLock()
				}
				if st == 0 {
					continue
				}
				assert.Equal(t, x, y)
				l.Unlock(st)
			}
		})
	}
	wg.Wait()
	require.NoError(t, VerifyStamped(l))
}

package rwlock_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

// stampedOpen returns a free lock whose readers enter the table.
func stampedOpen(t *testing.T) *rwlock.StampedLock {
	l := new(rwlock.StampedLock)
	rwlock.OpenStampedTable(l)
	require.True(t, rwlock.StampedTableIsOpen(l))
	return l
}

// stampedHolds checks how many read holds of l are in the word and in the table.
func stampedHolds(t *testing.T, l *rwlock.StampedLock, word, table int) {
	t.Helper()
	inWord, inTable := rwlock.StampedHolds(l)
	require.Equal(t, [2]int{word, table}, [2]int{inWord, inTable})
}

// elsewhere calls f in other goroutines, which have slots of their own and the caller's.
func elsewhere(f func()) {
	for range 32 {
		var wg sync.WaitGroup
		wg.Go(f)
		wg.Wait()
	}
}

func TestManyReadsBesideOthersOpenTheTable(t *testing.T) {
	var l rwlock.StampedLock
	other := l.ReadLock()
	n := 0
	for ; !rwlock.StampedTableIsOpen(&l) && n < 1000; n++ {
		l.UnlockRead(l.ReadLock())
	}
	require.Equal(t, 32, n)
	stampedHolds(t, &l, 1, 0)
	st := l.ReadLock()
	stampedHolds(t, &l, 1, 1)
	l.UnlockRead(st)
	l.UnlockRead(other)
	stampedHolds(t, &l, 0, 0)
	require.True(t, rwlock.StampedTableIsOpen(&l))
	stampedFree(t, &l)
}

func TestReadsThatFindTheLockFreeDoNotOpenTheTable(t *testing.T) {
	var l rwlock.StampedLock
	for range 1000 {
		l.UnlockRead(l.ReadLock())
	}
	require.False(t, rwlock.StampedTableIsOpen(&l))
}

func TestAWriteStartsTheCountOfReadsAnew(t *testing.T) {
	var l rwlock.StampedLock
	for range 100 {
		other := l.ReadLock()
		for range 31 {
			l.UnlockRead(l.ReadLock())
		}
		l.UnlockRead(other)
		require.False(t, rwlock.StampedTableIsOpen(&l))
		l.UnlockWrite(l.WriteLock())
	}
}

func TestWritersEnterAFreeLockWithAnOpenTable(t *testing.T) {
	for name, write := range map[string]func(l *rwlock.StampedLock) rwlock.Stamp{
		"WriteLock":       (*rwlock.StampedLock).WriteLock,
		"TryWriteLock":    (*rwlock.StampedLock).TryWriteLock,
		"TryWriteLockFor": func(l *rwlock.StampedLock) rwlock.Stamp { return l.TryWriteLockFor(0) },
		"WriteLockContext": func(l *rwlock.StampedLock) rwlock.Stamp {
			st, _ := l.WriteLockContext(t.Context())
			return st
		},
		"from optimistic": func(l *rwlock.StampedLock) rwlock.Stamp {
			return l.TryConvertToWriteLock(l.TryOptimisticRead())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := stampedOpen(t)
			w := write(l)
			require.True(t, w.IsWriteLock())
			require.False(t, rwlock.StampedTableIsOpen(l))
			require.Zero(t, l.TryReadLock())
			l.UnlockWrite(w)
			stampedFree(t, l)
		})
	}
}

func TestReadersOfTheTableExcludeWriters(t *testing.T) {
	for name, write := range map[string]func(l *rwlock.StampedLock) rwlock.Stamp{
		"TryWriteLock":    (*rwlock.StampedLock).TryWriteLock,
		"TryWriteLockFor": func(l *rwlock.StampedLock) rwlock.Stamp { return l.TryWriteLockFor(1) },
		"from optimistic": func(l *rwlock.StampedLock) rwlock.Stamp {
			return l.TryConvertToWriteLock(l.TryOptimisticRead())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := stampedOpen(t)
			st := l.ReadLock()
			stampedHolds(t, l, 0, 1)
			require.Zero(t, write(l))
			stampedHolds(t, l, 1, 0)
			require.True(t, l.Validate(st))
			l.UnlockRead(st)
			stampedFree(t, l)
		})
	}
}

func TestAWaitingWriterGetsTheLockFromReadersOfTheTable(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		rwlock.OpenStampedTable(l)
		a, b := l.ReadLock(), l.ReadLock()
		w := stampedStart(stampedWriting(l))
		r := stampedStart(stampedReading(l))
		l.UnlockRead(a)
		require.False(t, w.back)
		l.UnlockRead(b)
		synctest.Wait()
		require.True(t, w.back)
		require.False(t, r.back, "behind the writer")
		rwlock.OpenStampedTable(l)
		require.False(t, rwlock.StampedTableIsOpen(l), "a goroutine writes")
		l.UnlockWrite(w.st)
		synctest.Wait()
		require.True(t, r.back)
		l.UnlockRead(r.st)
	})
}

func TestAnyGoroutineReleasesAHoldOfTheTable(t *testing.T) {
	l := stampedOpen(t)
	for range 32 {
		rwlock.OpenStampedTable(l)
		st := l.ReadLock()
		stampedHolds(t, l, 0, 1)
		elsewhere(func() {
			l.UnlockRead(st)
			stampedHolds(t, l, 0, 0)
			rwlock.OpenStampedTable(l)
			st = l.ReadLock()
		})
		l.UnlockRead(st)
	}
	stampedFree(t, l)
}

func TestUnlocksWithoutAStampReleaseHoldsOfTheTable(t *testing.T) {
	l := stampedOpen(t)
	require.False(t, l.TryUnlockRead())
	rwlock.OpenStampedTable(l)
	l.ReadLock()
	elsewhere(func() {
		require.True(t, l.TryUnlockRead())
		require.False(t, l.TryUnlockRead())
		rwlock.OpenStampedTable(l)
		l.ReadLock()
	})
	require.True(t, l.TryUnlockRead())
	stampedFree(t, l)
}

func TestMisuseOfAnOpenTablePanicsAndChangesNothing(t *testing.T) {
	l := stampedOpen(t)
	st := l.ReadLock()
	l.UnlockRead(st)
	for _, unlock := range []func(rwlock.Stamp){l.UnlockRead, l.Unlock} {
		rwlock.OpenStampedTable(l)
		locktest.PanicsWith(t, locks.ErrNotHeld, func() { unlock(st) })
	}
	for _, convert := range []func(rwlock.Stamp) rwlock.Stamp{
		l.TryConvertToWriteLock, l.TryConvertToReadLock, l.TryConvertToOptimisticRead,
	} {
		rwlock.OpenStampedTable(l)
		require.Zero(t, convert(st))
	}
	stampedFree(t, l)
}

func TestHoldsOfTheTableConvert(t *testing.T) {
	l := stampedOpen(t)
	st := l.ReadLock()
	require.Equal(t, st, l.TryConvertToReadLock(st))

	rwlock.OpenStampedTable(l)
	other := l.ReadLock()
	stampedHolds(t, l, 1, 1)
	require.Zero(t, l.TryConvertToWriteLock(st), "another one reads")
	rwlock.OpenStampedTable(l)
	require.True(t, l.TryConvertToOptimisticRead(other).IsOptimisticRead())
	st = l.TryConvertToWriteLock(st)
	require.True(t, st.IsWriteLock())
	l.UnlockWrite(st)
	stampedFree(t, l)
}

func TestHoldsOfTheTableAreCounted(t *testing.T) {
	l := stampedOpen(t)
	var sts []rwlock.Stamp
	elsewhere(func() { sts = append(sts, l.ReadLock()) })
	stampedHolds(t, l, 0, 32)
	require.True(t, l.IsReadLocked())
	rwlock.OpenStampedTable(l)
	require.Equal(t, 32, l.ReadLockCount())
	for _, st := range sts {
		l.UnlockRead(st)
	}
	stampedFree(t, l)
}

func TestAFullSlotLeavesReadersToTheWord(t *testing.T) {
	l := stampedOpen(t)
	rwlock.FillStampedSlot(l)
	var sts []rwlock.Stamp
	for _, acquire := range []func() rwlock.Stamp{
		l.ReadLock, l.TryReadLock, func() rwlock.Stamp { return l.TryReadLockFor(0) },
	} {
		sts = append(sts, acquire())
	}
	stampedHolds(t, l, 3, rwlock.StampedSlotRoom)
	require.Equal(t, rwlock.StampedSlotRoom+3, l.ReadLockCount(), "more than the word has room for")
	for range rwlock.StampedSlotRoom {
		l.UnlockRead(sts[0])
	}
	for _, st := range sts {
		l.UnlockRead(st)
	}
	stampedFree(t, l)
}

// A reader that has put its hold into the table, and has not looked at the word since.
func TestAnUndecidedReaderReadsIfTheTableIsOpen(t *testing.T) {
	l := stampedOpen(t)
	finish := rwlock.EnterStampedTable(l)
	st := finish()
	require.True(t, st.IsReadLock())
	stampedHolds(t, l, 0, 1)
	l.UnlockRead(st)
	stampedFree(t, l)
}

func TestAnUndecidedReaderReadsIfTheWordHasItsHold(t *testing.T) {
	l := stampedOpen(t)
	finish := rwlock.EnterStampedTable(l)
	require.Zero(t, l.TryWriteLock(), "the reader may have looked")
	st := finish()
	require.True(t, l.Validate(st))
	stampedHolds(t, l, 1, 0)
	l.UnlockRead(st)
	stampedFree(t, l)
}

func TestAReaderDoesNotEnterATableThatIsFolded(t *testing.T) {
	l := stampedOpen(t)
	fold := rwlock.BeginStampedFold(l)
	require.Zero(t, rwlock.EnterStampedTable(l)())
	fold()
	stampedFree(t, l)
}

func TestATryThatMeetsAFoldWaitsForItsEnd(t *testing.T) {
	l := stampedOpen(t)
	fold := rwlock.BeginStampedFold(l)
	var st rwlock.Stamp
	var wg sync.WaitGroup
	wg.Go(func() { st = l.TryReadLockFor(0) })
	for range 1000 {
		runtime.Gosched()
	}
	fold()
	wg.Wait()
	l.UnlockRead(st)
	stampedFree(t, l)
}

func TestABargingTryEntersDuringAFold(t *testing.T) {
	l := stampedOpen(t)
	fold := rwlock.BeginStampedFold(l)
	st := l.TryReadLock()
	fold()
	l.UnlockRead(st)
	stampedFree(t, l)
}

func TestAReaderThatCameTooLateForTheTableLeavesIt(t *testing.T) {
	l := stampedOpen(t)
	w := l.WriteLock()
	finish := rwlock.EnterStampedTable(l)
	require.Zero(t, finish())
	stampedHolds(t, l, 0, 0)
	l.UnlockWrite(w)
	stampedFree(t, l)
}

func TestAnUndecidedReaderHasTheVersionOfItsHold(t *testing.T) {
	l := stampedOpen(t)
	w := l.WriteLock()
	finish := rwlock.EnterStampedTable(l)
	l.UnlockWrite(w)
	rwlock.OpenStampedTable(l)
	st := finish()
	require.True(t, l.Validate(st), "of the version in which the table is open")
	require.Zero(t, l.TryWriteLock())
	l.UnlockRead(st)
	stampedFree(t, l)
}

// A release takes any hold of its slot, so one reader's hold may stand for another's.
func TestAReleaseMayTakeAnUndecidedReadersHold(t *testing.T) {
	l := stampedOpen(t)
	rwlock.OpenStampedTable(l)
	st := l.ReadLock()
	require.True(t, l.IsReadLocked()) // its hold is in the word now
	finish := rwlock.EnterStampedTable(l)
	rwlock.OpenStampedTable(l)
	l.UnlockRead(st)
	stampedHolds(t, l, 1, 0)
	require.Zero(t, l.TryWriteLock())
	st = finish()
	require.True(t, st.IsReadLock())
	require.Zero(t, l.TryWriteLock())
	l.UnlockRead(st)
	stampedFree(t, l)
}

// The release has looked at the word while its stamp was of the version, and its hold does not
// exist.
func TestAStaleReleaseTakesNoHoldOfALaterReader(t *testing.T) {
	l := stampedOpen(t)
	stale := l.ReadLock()
	l.UnlockRead(stale)
	l.UnlockWrite(l.WriteLock())
	rwlock.OpenStampedTable(l)
	st := l.ReadLock()
	stampedHolds(t, l, 0, 1)
	require.False(t, rwlock.TakeStampedUnit(l, stale))
	require.True(t, rwlock.TakeStampedUnit(l, st))
	stampedFree(t, l)
}

// The release has looked at the word while the table was open, and its hold does not exist.
func TestAStaleReleaseTakesNoUnitOfAClosedTable(t *testing.T) {
	l := stampedOpen(t)
	stale := l.ReadLock()
	l.UnlockRead(stale)
	require.Zero(t, l.ReadLockCount()) // closes the table
	finish := rwlock.EnterStampedTable(l)
	require.False(t, rwlock.TakeStampedUnit(l, stale))
	require.Zero(t, finish())
	stampedFree(t, l)
}

func TestAnUndecidedReaderGetsTheVersionOfItsHold(t *testing.T) {
	l := stampedOpen(t)
	w := l.WriteLock()
	finish := rwlock.EnterClosedStampedTable(l) // it has seen the version of the writer
	l.UnlockWrite(w)
	l.UnlockWrite(l.WriteLock())
	rwlock.OpenStampedTable(l)
	require.Equal(t, 1, l.ReadLockCount()) // moves its unit into the word
	st := finish()
	require.True(t, l.Validate(st), "a stamp of an earlier version fits no hold")
	require.Zero(t, l.TryWriteLock())
	l.UnlockRead(st)
	stampedFree(t, l)
}

func TestAFoldBeyondTheGreatestCountForgetsNoHold(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		var st rwlock.Stamp
		for range rwlock.StampedWordReaders {
			st = l.TryReadLock()
		}
		rwlock.SetStampedOverflow(l, rwlock.MaxStampedOverflow)
		rwlock.OpenStampedTable(l)
		l.ReadLock()
		const all = rwlock.StampedWordReaders + rwlock.MaxStampedOverflow + 1
		require.Equal(t, all, l.ReadLockCount())
		require.Panics(t, func() { l.ReadLock() })
		w := stampedStart(func() (rwlock.Stamp, error) { return l.TryWriteLockFor(time.Second), nil })
		require.Equal(t, all, l.ReadLockCount())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, w.st)
		require.Equal(t, all, l.ReadLockCount())
		rwlock.SetStampedOverflow(l, 1)
		for range rwlock.StampedWordReaders + 1 {
			l.UnlockRead(st)
		}
	})
}

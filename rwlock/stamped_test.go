package rwlock_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/rwlock"
)

// stampedFree checks that nobody holds l or waits for it, and that it works in all modes.
func stampedFree(t testing.TB, l *rwlock.StampedLock) {
	t.Helper()
	require.NoError(t, rwlock.VerifyStamped(l))
	require.False(t, l.IsWriteLocked())
	require.False(t, l.IsReadLocked())
	require.Zero(t, l.ReadLockCount())
	require.False(t, l.HasQueued())
	require.Zero(t, l.QueueLength())
	w := l.TryWriteLockFor(0)
	require.NotZero(t, w)
	l.UnlockWrite(w)
	r := l.TryReadLockFor(0)
	require.NotZero(t, r)
	require.True(t, l.Validate(l.TryOptimisticRead()))
	l.UnlockRead(r)
	require.NoError(t, rwlock.VerifyStamped(l))
}

// stampedBubble runs f in a bubble, with a fresh lock that must be free and work at its end.
func stampedBubble(t *testing.T, f func(t *testing.T, l *rwlock.StampedLock)) {
	synctest.Test(t, func(t *testing.T) {
		l := new(rwlock.StampedLock)
		f(t, l)
		synctest.Wait()
		stampedFree(t, l)
	})
}

// stampedWait is an acquisition in a goroutine of its own.
type stampedWait struct {
	back bool
	st   rwlock.Stamp
	err  error
}

// stampedStart starts acquire in a bubble, and waits until it rests.
func stampedStart(acquire func() (rwlock.Stamp, error)) *stampedWait {
	w := new(stampedWait)
	go func() {
		w.st, w.err = acquire()
		w.back = true
	}()
	synctest.Wait()
	return w
}

func stampedWriting(l *rwlock.StampedLock) func() (rwlock.Stamp, error) {
	return func() (rwlock.Stamp, error) { return l.WriteLock(), nil }
}

func stampedReading(l *rwlock.StampedLock) func() (rwlock.Stamp, error) {
	return func() (rwlock.Stamp, error) { return l.ReadLock(), nil }
}

// stampedWays are the ways to wait for a lock, by mode. The ways with a limit wait for a day.
func stampedWays(l *rwlock.StampedLock, ctx context.Context) map[string][]func() (rwlock.Stamp, error) {
	return map[string][]func() (rwlock.Stamp, error){
		"write": {
			stampedWriting(l),
			func() (rwlock.Stamp, error) { return l.TryWriteLockFor(24 * time.Hour), nil },
			func() (rwlock.Stamp, error) { return l.WriteLockContext(ctx) },
			func() (rwlock.Stamp, error) { return l.WriteLockContext(context.Background()) },
		},
		"read": {
			stampedReading(l),
			func() (rwlock.Stamp, error) { return l.TryReadLockFor(24 * time.Hour), nil },
			func() (rwlock.Stamp, error) { return l.ReadLockContext(ctx) },
			func() (rwlock.Stamp, error) { return l.ReadLockContext(context.Background()) },
		},
	}
}

// Modes and stamps.

func TestTheZeroStampedIsFree(t *testing.T) {
	stampedFree(t, new(rwlock.StampedLock))
}

func TestAWriteHoldExcludesEveryMode(t *testing.T) {
	var l rwlock.StampedLock
	st := l.WriteLock()
	require.True(t, l.IsWriteLocked())
	require.False(t, l.IsReadLocked())
	require.Zero(t, l.TryWriteLock())
	require.Zero(t, l.TryReadLock())
	require.Zero(t, l.TryOptimisticRead())
	require.Zero(t, l.TryWriteLockFor(0))
	require.Zero(t, l.TryReadLockFor(0))
	require.True(t, l.Validate(st))
	l.UnlockWrite(st)
	stampedFree(t, &l)
}

func TestAReadHoldExcludesWritersOnly(t *testing.T) {
	var l rwlock.StampedLock
	a, b := l.ReadLock(), l.TryReadLock()
	require.NotZero(t, b)
	require.Equal(t, 2, l.ReadLockCount())
	require.True(t, l.IsReadLocked())
	require.False(t, l.IsWriteLocked())
	require.Zero(t, l.TryWriteLock())
	require.Zero(t, l.TryWriteLockFor(0))
	require.True(t, l.Validate(l.TryOptimisticRead()))
	l.UnlockRead(a)
	require.Zero(t, l.TryWriteLock())
	l.UnlockRead(b)
	stampedFree(t, &l)
}

func TestTheStaticPredicatesLookAtTheNumberOnly(t *testing.T) {
	var l rwlock.StampedLock
	w := l.WriteLock()
	l.UnlockWrite(w)
	r := l.ReadLock()
	l.UnlockRead(r)
	o := l.TryOptimisticRead()
	l.UnlockWrite(l.WriteLock())
	for _, c := range []struct {
		st                            rwlock.Stamp
		write, read, lock, optimistic bool
	}{
		{w, true, false, true, false}, {r, false, true, true, false}, {o, false, false, false, true}, {},
	} {
		assert.Equal(t, c.write, c.st.IsWriteLock())
		assert.Equal(t, c.read, c.st.IsReadLock())
		assert.Equal(t, c.lock, c.st.IsLock())
		assert.Equal(t, c.optimistic, c.st.IsOptimisticRead())
	}
}

func TestStampZeroIsNeverGood(t *testing.T) {
	var l rwlock.StampedLock
	check := func() {
		t.Helper()
		require.False(t, l.Validate(0))
		require.Zero(t, l.TryConvertToWriteLock(0))
		require.Zero(t, l.TryConvertToReadLock(0))
		require.Zero(t, l.TryConvertToOptimisticRead(0))
		for _, unlock := range []func(rwlock.Stamp){l.Unlock, l.UnlockRead, l.UnlockWrite} {
			locktest.PanicsWith(t, locks.ErrNotHeld, func() { unlock(0) })
		}
	}
	check()
	w := l.WriteLock()
	check()
	l.UnlockWrite(w)
	r := l.ReadLock()
	check()
	require.Equal(t, 1, l.ReadLockCount())
	l.UnlockRead(r)
	stampedFree(t, &l)
}

func TestOptimisticStampIsValidUntilAWriterEnters(t *testing.T) {
	var l rwlock.StampedLock
	o := l.TryOptimisticRead()
	require.True(t, l.Validate(o))
	r := l.ReadLock()
	require.True(t, l.Validate(o), "readers do it no harm")
	l.UnlockRead(r)
	require.True(t, l.Validate(o))
	w := l.WriteLock()
	require.False(t, l.Validate(o), "the writer is in")
	l.UnlockWrite(w)
	require.False(t, l.Validate(o), "the writer was in")
	require.NotEqual(t, o, l.TryOptimisticRead())
}

func TestOptimisticStampDiesWhenAWaitingWriterEnters(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		r := l.ReadLock()
		o := l.TryOptimisticRead()
		w := stampedStart(stampedWriting(l))
		require.True(t, l.Validate(o), "it only waits")
		require.True(t, l.Validate(r))
		l.UnlockRead(r)
		synctest.Wait()
		require.True(t, w.back)
		require.False(t, l.Validate(o))
		require.False(t, l.Validate(r))
		l.UnlockWrite(w.st)
	})
}

func TestReleasedReadStampIsValidUntilWriterEnters(t *testing.T) {
	var l rwlock.StampedLock
	r := l.ReadLock()
	require.True(t, l.Validate(r))
	l.UnlockRead(r)
	require.True(t, l.Validate(r))
	w := l.WriteLock()
	require.False(t, l.Validate(r))
	l.UnlockWrite(w)
	require.False(t, l.Validate(r))
}

func TestAWriteStampDiesWithItsRelease(t *testing.T) {
	var l rwlock.StampedLock
	w := l.WriteLock()
	require.True(t, l.Validate(w))
	l.UnlockWrite(w)
	require.False(t, l.Validate(w))
	w2 := l.WriteLock()
	require.NotEqual(t, w, w2)
	require.False(t, l.Validate(w))
	l.UnlockWrite(w2)
}

func TestReadStampsOfOneVersionAreInterchangeable(t *testing.T) {
	var l rwlock.StampedLock
	a, b := l.ReadLock(), l.ReadLock()
	require.Equal(t, a, b)
	l.UnlockRead(a)
	l.Unlock(a)
	stampedFree(t, &l)
}

func TestUnlockWithWrongStampPanicsAndChangesNothing(t *testing.T) {
	var l rwlock.StampedLock
	oldWrite := l.WriteLock()
	l.UnlockWrite(oldWrite)
	oldRead := l.ReadLock()
	l.UnlockRead(oldRead)
	oldOptimistic := l.TryOptimisticRead()
	l.UnlockWrite(l.WriteLock())
	bad := []rwlock.Stamp{0, 1, 2, 3, 7, 256, math.MaxUint64, oldWrite, oldRead, oldOptimistic}
	refuse := func(unlock func(rwlock.Stamp), sts ...rwlock.Stamp) {
		t.Helper()
		for _, st := range sts {
			before := l.String()
			locktest.PanicsWith(t, locks.ErrNotHeld, func() { unlock(st) })
			require.Equal(t, before, l.String(), "%#x", uint64(st))
			require.NoError(t, rwlock.VerifyStamped(&l))
		}
	}
	all := func(sts ...rwlock.Stamp) {
		t.Helper()
		refuse(l.UnlockWrite, sts...)
		refuse(l.UnlockRead, sts...)
		refuse(l.Unlock, sts...)
	}

	all(bad...)
	all(l.TryOptimisticRead())

	w := l.WriteLock()
	all(bad...)
	refuse(l.UnlockRead, w)
	next := w &^ 7
	all(next|2, next|4, next) // of the same version, but not of the hold
	l.Unlock(w)
	all(w)

	r := l.ReadLock()
	all(bad...)
	all(l.TryOptimisticRead()) // of the same version
	all(w)
	refuse(l.UnlockWrite, r)
	refuse(l.UnlockWrite, r^3) // a write stamp of this version
	r2 := l.ReadLock()
	all(bad...)
	l.Unlock(r)
	l.Unlock(r2)
	all(r)
	stampedFree(t, &l)
}

func TestUnlocksWithoutAStampReleaseWhatIsHeld(t *testing.T) {
	var l rwlock.StampedLock
	require.False(t, l.TryUnlockRead())
	require.False(t, l.TryUnlockWrite())
	w := l.WriteLock()
	require.False(t, l.TryUnlockRead())
	require.True(t, l.TryUnlockWrite())
	locktest.PanicsWith(t, locks.ErrNotHeld, func() { l.UnlockWrite(w) })
	l.ReadLock()
	l.ReadLock()
	require.False(t, l.TryUnlockWrite())
	require.True(t, l.TryUnlockRead())
	require.Equal(t, 1, l.ReadLockCount())
	require.True(t, l.TryUnlockRead())
	require.False(t, l.TryUnlockRead())
	stampedFree(t, &l)
}

func TestStampsAreGoodWhenVersionsComeAround(t *testing.T) {
	for _, v := range []uint64{1<<50 - 1, 1<<50 - 2, 1<<49 - 1, 1 << 49, 0} {
		var l rwlock.StampedLock
		rwlock.SetStampedVersion(&l, v)
		stamps := map[rwlock.Stamp]bool{0: true}
		for range 4 {
			o, r := l.TryOptimisticRead(), l.ReadLock()
			l.UnlockRead(r)
			w := l.WriteLock()
			for _, st := range []rwlock.Stamp{o, r, w} {
				require.False(t, stamps[st], "%#x is 0, or was given twice", uint64(st))
				stamps[st] = true
			}
			require.False(t, l.Validate(o) || l.Validate(r))
			require.True(t, l.Validate(w))
			l.UnlockWrite(w)
			require.False(t, l.Validate(o) || l.Validate(r) || l.Validate(w))
			locktest.PanicsWith(t, locks.ErrNotHeld, func() { l.Unlock(w) })
			require.NoError(t, rwlock.VerifyStamped(&l))
		}
		stampedFree(t, &l)
	}
}

func TestStringTellsTheModeAndHowManyWait(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		require.Contains(t, l.String(), "[unlocked, 0 queued]")
		r := l.ReadLock()
		require.Contains(t, l.String(), "[1 read locks, 0 queued]")
		w := stampedStart(stampedWriting(l))
		require.Contains(t, l.String(), "[1 read locks, 1 queued]")
		l.UnlockRead(r)
		synctest.Wait()
		require.Contains(t, l.String(), "[write-locked, 0 queued]")
		l.UnlockWrite(w.st)
	})
}

// Counting.

func TestThreeHundredNestedReadHoldsCountExactly(t *testing.T) {
	var l rwlock.StampedLock
	var stamps []rwlock.Stamp
	for i := range 300 {
		stamps = append(stamps, l.ReadLock())
		require.Equal(t, i+1, l.ReadLockCount())
	}
	for i, st := range stamps {
		l.UnlockRead(st)
		require.Equal(t, 299-i, l.ReadLockCount())
	}
	stampedFree(t, &l)
}

func TestReadHoldsBeyondBitsOfWordCountExactly(t *testing.T) {
	var l rwlock.StampedLock
	const n = 65_536
	st := l.ReadLock()
	for i := 1; i < n; i++ {
		switch i % 4 {
		case 0:
			require.Equal(t, st, l.ReadLock())
		case 1:
			require.Equal(t, st, l.TryReadLock())
		case 2:
			require.Equal(t, st, l.TryConvertToReadLock(l.TryOptimisticRead()))
		case 3:
			got, err := l.ReadLockContext(t.Context())
			require.NoError(t, err)
			require.Equal(t, st, got)
		}
		require.Equal(t, i+1, l.ReadLockCount())
	}
	require.Zero(t, l.TryWriteLock())
	require.Zero(t, l.TryConvertToWriteLock(st))
	for i := n; i > 0; i-- {
		require.Equal(t, i, l.ReadLockCount())
		require.True(t, l.IsReadLocked())
		switch i % 3 {
		case 0:
			l.UnlockRead(st)
		case 1:
			require.True(t, l.TryUnlockRead())
		case 2:
			require.True(t, l.Validate(l.TryConvertToOptimisticRead(st)))
		}
	}
	locktest.PanicsWith(t, locks.ErrNotHeld, func() { l.UnlockRead(st) })
	stampedFree(t, &l)
}

func TestSixtySixThousandReadersAreInsideTogether(t *testing.T) {
	n := 66_000
	if locktest.Race {
		n = 6000 // it knows no more than 8128 goroutines
	}
	var l rwlock.StampedLock
	var in atomic.Int64
	out := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			st := l.ReadLock()
			in.Add(1)
			<-out
			l.UnlockRead(st)
		})
	}
	locktest.Await(t, func() bool { return in.Load() == int64(n) }, "all to read")
	require.Equal(t, n, l.ReadLockCount())
	w := make(chan rwlock.Stamp, 1)
	go func() { w <- l.WriteLock() }()
	locktest.Await(t, l.HasQueued, "the writer to wait")
	close(out)
	wg.Wait()
	l.UnlockWrite(<-w)
	stampedFree(t, &l)
}

func TestReadersAroundTheWordsLimitCountExactly(t *testing.T) {
	var l rwlock.StampedLock
	const base = rwlock.StampedWordReaders - 2
	st := l.ReadLock()
	for range base - 1 {
		l.ReadLock()
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				l.UnlockRead(l.ReadLock())
				if n := l.ReadLockCount(); n < base || n > base+7 {
					assert.Fail(t, "wrong count", "%d", n)
					return
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, base, l.ReadLockCount())
	for range base {
		l.UnlockRead(st)
	}
	stampedFree(t, &l)
}

func TestAReadHoldInTheWordKeepsItsVersion(t *testing.T) {
	var l rwlock.StampedLock
	add := rwlock.AddStampedReader(&l)
	l.UnlockWrite(l.WriteLock())
	ok, full := add()
	require.False(t, ok, "the stamp would fit no hold")
	require.False(t, full)
	stampedFree(t, &l)
}

func TestReadHoldBeyondTheWordKeepsItsVersion(t *testing.T) {
	var l rwlock.StampedLock
	fill := func() (st rwlock.Stamp) {
		for range rwlock.StampedWordReaders {
			st = l.ReadLock()
		}
		require.Equal(t, rwlock.StampedWordReaders, l.ReadLockCount()) // moves the holds of the table into the word
		stampedHolds(t, &l, rwlock.StampedWordReaders, 0)
		return st
	}
	old := fill()
	add, remove := rwlock.AddStampedReader(&l), rwlock.RemoveStampedReader(&l)
	for range rwlock.StampedWordReaders {
		l.UnlockRead(old)
	}
	l.UnlockWrite(l.WriteLock())
	fill()
	st := l.ReadLock()

	ok, full := add()
	require.False(t, ok, "the stamp would fit no hold")
	require.False(t, full)
	require.False(t, remove(), "the hold of the old stamp is gone")
	require.Equal(t, rwlock.StampedWordReaders+1, l.ReadLockCount())
	for range rwlock.StampedWordReaders + 1 {
		l.UnlockRead(st)
	}
	stampedFree(t, &l)
}

func TestOneReadHoldTooManyChangesNothing(t *testing.T) {
	var l rwlock.StampedLock
	var st rwlock.Stamp
	for range rwlock.StampedWordReaders {
		st = l.ReadLock()
	}
	rwlock.SetStampedOverflow(&l, rwlock.MaxStampedOverflow)
	most := rwlock.StampedWordReaders + rwlock.MaxStampedOverflow
	require.Equal(t, most, l.ReadLockCount())
	for name, f := range map[string]func(){
		"ReadLock":             func() { l.ReadLock() },
		"TryReadLock":          func() { l.TryReadLock() },
		"TryReadLockFor 0":     func() { l.TryReadLockFor(0) },
		"TryReadLockFor":       func() { l.TryReadLockFor(time.Minute) },
		"TryConvertToReadLock": func() { l.TryConvertToReadLock(l.TryOptimisticRead()) },
		"Lock of the view":     l.ReadLocker().(sync.Locker).Lock,
	} {
		t.Run(name, func(t *testing.T) {
			locktest.PanicsWith(t, locks.ErrTooManyHolds, f)
			require.Equal(t, most, l.ReadLockCount())
		})
	}
	got, err := l.ReadLockContext(context.Background())
	require.ErrorIs(t, err, locks.ErrTooManyHolds)
	require.Zero(t, got)
	require.ErrorIs(t, l.ReadLocker().LockContext(t.Context()), locks.ErrTooManyHolds)
	ok, err := l.ReadLocker().TryLockContext(t.Context())
	require.ErrorIs(t, err, locks.ErrTooManyHolds)
	require.False(t, ok)
	require.Equal(t, most, l.ReadLockCount())

	l.UnlockRead(st)
	require.Equal(t, st, l.ReadLock(), "one has gone, and another may come")
	rwlock.SetStampedOverflow(&l, 0)
	for range rwlock.StampedWordReaders {
		l.UnlockRead(st)
	}
	stampedFree(t, &l)
}

// Conversions.

func TestConversionToTheSameModeReturnsSameStamp(t *testing.T) {
	var l rwlock.StampedLock
	o := l.TryOptimisticRead()
	require.Equal(t, o, l.TryConvertToOptimisticRead(o))
	r := l.ReadLock()
	require.Equal(t, r, l.TryConvertToReadLock(r))
	require.Equal(t, 1, l.ReadLockCount())
	l.UnlockRead(r)
	w := l.WriteLock()
	require.Equal(t, w, l.TryConvertToWriteLock(w))
	require.True(t, l.IsWriteLocked())
	l.UnlockWrite(w)
	stampedFree(t, &l)
}

func TestAWriteHoldConvertsToAReadHold(t *testing.T) {
	var l rwlock.StampedLock
	w := l.WriteLock()
	r := l.TryConvertToReadLock(w)
	require.True(t, r.IsReadLock())
	require.True(t, l.Validate(r))
	require.False(t, l.Validate(w))
	require.Equal(t, 1, l.ReadLockCount())
	require.False(t, l.IsWriteLocked())
	locktest.PanicsWith(t, locks.ErrNotHeld, func() { l.UnlockWrite(w) })
	other := l.TryReadLock()
	require.NotZero(t, other, "while others read")
	l.UnlockRead(r)
	l.UnlockRead(other)
	stampedFree(t, &l)
}

func TestAWriteHoldConvertsToAnOptimisticStamp(t *testing.T) {
	var l rwlock.StampedLock
	w := l.WriteLock()
	o := l.TryConvertToOptimisticRead(w)
	require.True(t, o.IsOptimisticRead())
	require.True(t, l.Validate(o))
	require.False(t, l.Validate(w))
	stampedFree(t, &l)
	require.False(t, l.Validate(o))
}

func TestAReadHoldConvertsToAnOptimisticStamp(t *testing.T) {
	var l rwlock.StampedLock
	r := l.ReadLock()
	l.ReadLock()
	o := l.TryConvertToOptimisticRead(r)
	require.True(t, o.IsOptimisticRead())
	require.Equal(t, 1, l.ReadLockCount())
	require.True(t, l.Validate(o))
	o = l.TryConvertToOptimisticRead(r)
	require.True(t, l.Validate(o))
	require.False(t, l.IsReadLocked())
	require.Zero(t, l.TryConvertToOptimisticRead(r), "none is left")
	stampedFree(t, &l)
}

func TestAnOptimisticStampConvertsDuringOtherReads(t *testing.T) {
	var l rwlock.StampedLock
	o := l.TryOptimisticRead()
	a := l.TryConvertToReadLock(o)
	require.True(t, a.IsReadLock())
	b := l.TryConvertToReadLock(o)
	require.True(t, b.IsReadLock())
	require.Equal(t, 2, l.ReadLockCount())
	l.UnlockRead(a)
	l.UnlockRead(b)
	stampedFree(t, &l)
	require.Zero(t, l.TryConvertToReadLock(o), "a writer has been in")
	require.False(t, l.IsReadLocked())
}

func TestReadHoldConvertsToWriteHoldOnlyAlone(t *testing.T) {
	var l rwlock.StampedLock
	r := l.ReadLock()
	other := l.ReadLock()
	require.Zero(t, l.TryConvertToWriteLock(r))
	require.Equal(t, 2, l.ReadLockCount(), "the hold is kept")
	l.UnlockRead(other)
	o := l.TryOptimisticRead()
	w := l.TryConvertToWriteLock(r)
	require.True(t, w.IsWriteLock())
	require.True(t, l.IsWriteLocked())
	require.False(t, l.IsReadLocked())
	require.True(t, l.Validate(w))
	require.False(t, l.Validate(r))
	require.False(t, l.Validate(o))
	locktest.PanicsWith(t, locks.ErrNotHeld, func() { l.UnlockRead(r) })
	l.UnlockWrite(w)
	require.Zero(t, l.TryConvertToWriteLock(r))
	stampedFree(t, &l)
}

func TestOptimisticStampConvertsToFreeLocksWriteHold(t *testing.T) {
	var l rwlock.StampedLock
	o := l.TryOptimisticRead()
	r := l.ReadLock()
	require.Zero(t, l.TryConvertToWriteLock(o), "somebody reads")
	require.Equal(t, 1, l.ReadLockCount())
	l.UnlockRead(r)
	w := l.TryConvertToWriteLock(o)
	require.True(t, w.IsWriteLock())
	require.Zero(t, l.TryConvertToWriteLock(o), "somebody writes")
	require.Zero(t, l.TryConvertToReadLock(o))
	require.Zero(t, l.TryConvertToOptimisticRead(o))
	l.UnlockWrite(w)
	require.Zero(t, l.TryConvertToWriteLock(o), "somebody has written")
	stampedFree(t, &l)
}

func TestConversionsOfStaleStampsChangeNothing(t *testing.T) {
	var l rwlock.StampedLock
	o := l.TryOptimisticRead()
	r := l.ReadLock()
	l.UnlockRead(r)
	w := l.WriteLock()
	l.UnlockWrite(w)
	check := func() {
		t.Helper()
		before := l.String()
		for _, st := range []rwlock.Stamp{o, r, w, 3, 7, math.MaxUint64} {
			require.Zero(t, l.TryConvertToWriteLock(st))
			require.Zero(t, l.TryConvertToReadLock(st))
			require.Zero(t, l.TryConvertToOptimisticRead(st))
		}
		require.Equal(t, before, l.String())
	}
	check()
	w = l.TryOptimisticRead() ^ 5 // a write stamp that was not issued yet
	require.True(t, w.IsWriteLock())
	check()
	w = l.WriteLock()
	l.UnlockWrite(w)
	check()
	w2 := l.WriteLock()
	check()
	r = l.TryConvertToReadLock(w2)
	l.UnlockRead(r) // still valid, but no hold
	require.Zero(t, l.TryConvertToReadLock(r))
	require.Zero(t, l.TryConvertToWriteLock(r))
	require.Zero(t, l.TryConvertToOptimisticRead(r))
	stampedFree(t, &l)
}

func TestDowngradeAdmitsReadersInFrontAndNoWriter(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		w := l.WriteLock()
		a, b := stampedStart(stampedReading(l)), stampedStart(stampedReading(l))
		x := stampedStart(stampedWriting(l))
		c := stampedStart(stampedReading(l))
		r := l.TryConvertToReadLock(w)
		synctest.Wait()
		require.True(t, a.back && b.back)
		require.False(t, x.back || c.back)
		require.Equal(t, 3, l.ReadLockCount())
		require.Equal(t, 2, l.QueueLength())
		l.UnlockRead(r)
		l.UnlockRead(a.st)
		l.UnlockRead(b.st)
		synctest.Wait()
		require.True(t, x.back)
		l.UnlockWrite(x.st)
		synctest.Wait()
		l.UnlockRead(c.st)
	})
}

func TestADowngradeKeepsAWaitingWriterOut(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		w := l.WriteLock()
		x := stampedStart(stampedWriting(l))
		r := l.TryConvertToReadLock(w)
		synctest.Wait()
		require.False(t, x.back)
		l.UnlockRead(r)
		synctest.Wait()
		require.True(t, x.back)
		l.UnlockWrite(x.st)
	})
}

func TestAStampedUpgradePassesAWaitingWriter(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		r := l.ReadLock()
		x := stampedStart(stampedWriting(l))
		w := l.TryConvertToWriteLock(r)
		require.NotZero(t, w)
		synctest.Wait()
		require.False(t, x.back)
		l.UnlockWrite(w)
		synctest.Wait()
		require.True(t, x.back)
		l.UnlockWrite(x.st)
	})
}

func TestAConversionToOptimisticLetsTheWaitersIn(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		w := l.WriteLock()
		r := stampedStart(stampedReading(l))
		require.NotZero(t, l.TryConvertToOptimisticRead(w))
		synctest.Wait()
		require.True(t, r.back)
		x := stampedStart(stampedWriting(l))
		require.NotZero(t, l.TryConvertToOptimisticRead(r.st))
		synctest.Wait()
		require.True(t, x.back)
		l.UnlockWrite(x.st)
	})
}

// Waiting.

func TestSecondWriteLockByTheSamePartyBlocks(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		var first rwlock.Stamp
		w := stampedStart(func() (rwlock.Stamp, error) {
			first = l.WriteLock()
			return l.WriteLock(), nil
		})
		require.False(t, w.back)
		l.UnlockWrite(first) // by another
		synctest.Wait()
		require.True(t, w.back)
		l.UnlockWrite(w.st)
	})
}

func TestWaitersAreListedInOrder(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		var ids [3]locks.Owner
		waiting := func(i int, lock func() rwlock.Stamp) *stampedWait {
			return stampedStart(func() (rwlock.Stamp, error) {
				ids[i] = locktest.Me()
				return lock(), nil
			})
		}
		a, b := waiting(0, l.ReadLock), waiting(1, l.WriteLock)
		c := waiting(2, l.ReadLock)
		require.Equal(t, ids[:], l.Queued())
		l.UnlockWrite(held)
		for _, w := range []*stampedWait{a, b, c} {
			synctest.Wait()
			l.Unlock(w.st)
		}
		require.Empty(t, l.Queued())
	})
}

func TestEveryWaitIsDurablyBlockedAndGetsLock(t *testing.T) {
	for _, mode := range []string{"write", "read"} {
		for i := range 4 {
			stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
				held := l.WriteLock()
				w := stampedStart(stampedWays(l, t.Context())[mode][i])
				require.False(t, w.back)
				require.Equal(t, 1, l.QueueLength())
				require.True(t, l.HasQueued())
				require.NoError(t, rwlock.VerifyStamped(l))
				l.UnlockWrite(held)
				synctest.Wait()
				require.True(t, w.back)
				require.NoError(t, w.err)
				require.Equal(t, mode == "write", w.st.IsWriteLock())
				require.Zero(t, l.QueueLength())
				l.Unlock(w.st)
			})
		}
	}
}

func TestReadersThatWaitBehindAWriterEnterTogether(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		writer := stampedStart(stampedWriting(l))
		var rs []*stampedWait
		for range 5 {
			for _, way := range stampedWays(l, t.Context())["read"] {
				rs = append(rs, stampedStart(way))
			}
		}
		last := stampedStart(stampedWriting(l))
		require.Equal(t, len(rs)+2, l.QueueLength())
		l.UnlockWrite(held)
		synctest.Wait()
		require.True(t, writer.back, "first come")
		require.Equal(t, len(rs)+1, l.QueueLength())
		l.UnlockWrite(writer.st)
		synctest.Wait()
		require.Equal(t, len(rs), l.ReadLockCount(), "inside together")
		require.False(t, last.back)
		for _, r := range rs {
			require.True(t, r.back)
			l.UnlockRead(r.st)
		}
		synctest.Wait()
		require.True(t, last.back)
		l.UnlockWrite(last.st)
	})
}

func TestReaderDoesNotOvertakeAWriterThatWaits(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		r := l.ReadLock()
		w := stampedStart(stampedWriting(l))
		late := stampedStart(stampedReading(l))
		require.False(t, late.back)
		require.Zero(t, l.TryReadLockFor(0), "the fair try")
		barger := l.TryReadLock()
		require.NotZero(t, barger, "but this one barges")
		l.UnlockRead(r)
		synctest.Wait()
		require.False(t, w.back)
		l.UnlockRead(barger)
		synctest.Wait()
		require.True(t, w.back)
		require.False(t, late.back)
		l.UnlockWrite(w.st)
		synctest.Wait()
		require.True(t, late.back)
		l.UnlockRead(late.st)
	})
}

func TestReaderEntersAfterTheWriterThatQueueShows(t *testing.T) {
	for range 300 {
		var l rwlock.StampedLock
		held := l.ReadLock()
		var order []string // guarded by l, and by the readers' turn
		var wg sync.WaitGroup
		wg.Go(func() {
			st := l.WriteLock()
			order = append(order, "writer")
			l.UnlockWrite(st)
		})
		locktest.Await(t, func() bool { return l.QueueLength() == 1 }, "the writer")
		wg.Go(func() {
			st := l.ReadLock()
			order = append(order, "reader")
			l.UnlockRead(st)
		})
		locktest.Await(t, func() bool { return l.QueueLength() == 2 }, "the reader")
		l.UnlockRead(held)
		wg.Wait()
		require.Equal(t, []string{"writer", "reader"}, order)
	}
}

func TestEachCountedWaiterHasItsPlace(t *testing.T) {
	var l rwlock.StampedLock
	var wg sync.WaitGroup
	var running atomic.Int32
	for i := range 4 {
		running.Add(1)
		wg.Go(func() {
			defer running.Add(-1)
			for range 2_000 {
				if i%2 == 0 {
					l.UnlockWrite(l.WriteLock())
				} else {
					l.UnlockRead(l.ReadLock())
				}
			}
		})
	}
	for running.Load() > 0 {
		counted, placed := rwlock.StampedPlaces(&l)
		require.Equal(t, counted, placed)
		runtime.Gosched()
	}
	wg.Wait()
	stampedFree(t, &l)
}

func TestWritersAreAdmittedInOrderOfArrival(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		var order []int
		for i := range 6 {
			go func() {
				st := l.WriteLock()
				order = append(order, i)
				l.UnlockWrite(st)
			}()
			synctest.Wait()
		}
		l.UnlockWrite(held)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)
	})
}

func TestOvertakenWriterInFrontGetsTheLockReserved(t *testing.T) {
	reserved := false
	for range 20 {
		stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
			held := l.WriteLock()
			w := stampedStart(stampedWriting(l))
			for losses := 0; !rwlock.StampedReserved(l); losses++ {
				require.LessOrEqual(t, losses, rwlock.StampedMaxLost)
				l.UnlockWrite(held)
				if held = l.TryWriteLock(); held == 0 { // the waiter was faster
					synctest.Wait()
					l.UnlockWrite(w.st)
					return
				}
				synctest.Wait()
				require.False(t, w.back)
			}
			reserved = true
			barger := stampedStart(stampedWriting(l))
			l.UnlockWrite(held)
			late := l.TryWriteLockFor(time.Nanosecond)
			synctest.Wait()
			require.Zero(t, late, "it is reserved for the one in front")
			require.True(t, w.back)
			require.False(t, barger.back)
			require.False(t, rwlock.StampedReserved(l))
			l.UnlockWrite(w.st)
			synctest.Wait()
			l.UnlockWrite(barger.st)
		})
	}
	require.True(t, reserved)
}

func TestAReservationEndsWhenItsWaiterGivesUp(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		ctx, cancel := context.WithCancel(t.Context())
		w := stampedStart(func() (rwlock.Stamp, error) { return l.WriteLockContext(ctx) })
		for !rwlock.StampedReserved(l) {
			l.UnlockWrite(held)
			if held = l.TryWriteLock(); held == 0 {
				cancel()
				synctest.Wait()
				l.UnlockWrite(w.st)
				return
			}
			synctest.Wait()
		}
		next := stampedStart(stampedWriting(l))
		cancel()
		synctest.Wait()
		require.ErrorIs(t, w.err, context.Canceled)
		require.False(t, rwlock.StampedReserved(l))
		l.UnlockWrite(held)
		synctest.Wait()
		require.True(t, next.back)
		l.UnlockWrite(next.st)
	})
}

func TestAWriterMayOvertakeReadersNotYetAwake(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		a, b := stampedStart(stampedReading(l)), stampedStart(stampedReading(l))
		l.UnlockWrite(held)
		held = l.TryWriteLock() // before they have run
		require.NotZero(t, held)
		synctest.Wait()
		require.False(t, a.back || b.back)
		require.Equal(t, 2, l.QueueLength())
		l.UnlockWrite(held)
		synctest.Wait()
		require.Equal(t, 2, l.ReadLockCount())
		require.Zero(t, l.QueueLength())
		l.UnlockRead(a.st)
		l.UnlockRead(b.st)
	})
}

func TestWokenReaderThatBargerAdmitsIsUnparkedOnce(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		a, b := stampedStart(stampedReading(l)), stampedStart(stampedReading(l))
		c := stampedStart(stampedWriting(l)) // so that the readers are not sent
		l.UnlockWrite(held)                  // tells a
		r := l.TryReadLock()
		d := stampedStart(stampedWriting(l)) // settles, and so admits a and b together with r
		require.True(t, a.back && b.back)
		require.False(t, c.back || d.back)
		l.UnlockRead(r)
		l.UnlockRead(a.st)
		l.UnlockRead(b.st)
		synctest.Wait()
		l.UnlockWrite(c.st)
		synctest.Wait()
		l.UnlockWrite(d.st)
	})
}

func TestMoreReadersThanTheWordCountsEnter(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		const n = 2*rwlock.StampedWordReaders + 10
		held := l.WriteLock()
		var rs []*stampedWait
		for range n {
			rs = append(rs, stampedStart(stampedReading(l)))
		}
		require.Equal(t, n, l.QueueLength())
		l.UnlockWrite(held)
		synctest.Wait()
		require.Equal(t, n, l.ReadLockCount())
		for _, r := range rs {
			l.UnlockRead(r.st)
		}
	})
}

func TestWritersDoNotStarveAmongReaders(t *testing.T) {
	var l rwlock.StampedLock
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !stop.Load() {
				st := l.ReadLock()
				runtime.Gosched() // so that the holds overlap
				l.UnlockRead(st)
			}
		})
	}
	for range 50 {
		l.UnlockWrite(l.WriteLock())
	}
	stop.Store(true)
	wg.Wait()
	stampedFree(t, &l)
}

func TestReadersDoNotStarveAmongWriters(t *testing.T) {
	var l rwlock.StampedLock
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !stop.Load() {
				l.UnlockWrite(l.WriteLock())
			}
		})
	}
	for range 50 {
		l.UnlockRead(l.ReadLock())
	}
	stop.Store(true)
	wg.Wait()
	stampedFree(t, &l)
}

// Limits.

func TestTriesWithoutTimeTakeAFreeLock(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		began := time.Now()
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			st := l.TryWriteLockFor(d)
			require.True(t, st.IsWriteLock())
			require.Zero(t, l.TryWriteLockFor(d))
			require.Zero(t, l.TryReadLockFor(d))
			l.UnlockWrite(st)
			st = l.TryReadLockFor(d)
			require.True(t, st.IsReadLock())
			require.Zero(t, l.TryWriteLockFor(d))
			l.UnlockRead(st)
		}
		require.Zero(t, time.Since(began))
	})
}

func TestALimitedWaitEndsAfterExactlyItsDuration(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		began := time.Now()
		require.Zero(t, l.TryWriteLockFor(time.Hour))
		require.Zero(t, l.TryReadLockFor(time.Hour))
		require.Equal(t, 2*time.Hour, time.Since(began))
		front := stampedStart(stampedWriting(l))
		require.Zero(t, l.TryReadLockFor(time.Hour), "behind somebody")
		require.Equal(t, 3*time.Hour, time.Since(began))
		require.Equal(t, 1, l.QueueLength())
		l.UnlockWrite(held)
		synctest.Wait()
		l.UnlockWrite(front.st)
	})
}

func TestALimitSpansBothStagesOfAWait(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		began := time.Now()
		front := stampedStart(func() (rwlock.Stamp, error) { return l.TryWriteLockFor(40 * time.Minute), nil })
		require.Zero(t, l.TryWriteLockFor(time.Hour), "40 minutes behind the first, and 20 in front")
		require.Equal(t, time.Hour, time.Since(began))
		synctest.Wait()
		require.True(t, front.back)
		require.Zero(t, front.st)
		require.Zero(t, l.QueueLength())
		l.UnlockWrite(held)
	})
}

func TestTheGreatestDurationDoesNotExpireForStamped(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		w := stampedStart(func() (rwlock.Stamp, error) { return l.TryWriteLockFor(math.MaxInt64), nil })
		r := stampedStart(func() (rwlock.Stamp, error) { return l.TryReadLockFor(math.MaxInt64), nil })
		time.Sleep(1000 * time.Hour)
		require.False(t, w.back || r.back)
		l.UnlockWrite(held)
		synctest.Wait()
		require.True(t, w.st.IsWriteLock())
		l.UnlockWrite(w.st)
		synctest.Wait()
		require.True(t, r.st.IsReadLock())
		l.UnlockRead(r.st)
	})
}

func TestContextThatHasEndedBeatsAFreeLock(t *testing.T) {
	var l rwlock.StampedLock
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, lock := range []func(context.Context) (rwlock.Stamp, error){l.WriteLockContext, l.ReadLockContext} {
		st, err := lock(ctx)
		require.Zero(t, st)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		st, err = lock(nil)
		require.Zero(t, st)
		require.ErrorIs(t, err, locks.ErrNilContext)
	}
	stampedFree(t, &l)
}

func TestAWaiterWhoseContextEndsLeavesNoGhost(t *testing.T) {
	for _, mode := range []string{"write", "read"} {
		stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
			held := l.WriteLock()
			for _, front := range []bool{true, false} { // the waiter that gives up is in front, or at the gate
				var other *stampedWait
				if !front {
					other = stampedStart(stampedWriting(l))
				}
				cause := errors.New("cause")
				ctx, cancel := context.WithCancelCause(t.Context())
				w := stampedStart(stampedWays(l, ctx)[mode][2])
				cancel(cause)
				synctest.Wait()
				require.True(t, w.back)
				require.Zero(t, w.st)
				require.ErrorIs(t, w.err, context.Canceled)
				require.ErrorIs(t, w.err, cause)
				require.NoError(t, rwlock.VerifyStamped(l))
				if front {
					require.Zero(t, l.QueueLength())
					require.False(t, l.HasQueued())
					continue
				}
				require.Equal(t, 1, l.QueueLength())
				l.UnlockWrite(held)
				synctest.Wait()
				held = other.st
			}
			l.UnlockWrite(held)
		})
	}
}

func TestACancelledWriterAdmitsTheReadersBehindIt(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		r := l.ReadLock()
		w := stampedStart(func() (rwlock.Stamp, error) { return l.TryWriteLockFor(time.Hour), nil })
		ctx, cancel := context.WithCancel(t.Context())
		w2 := stampedStart(func() (rwlock.Stamp, error) { return l.WriteLockContext(ctx) })
		a, b := stampedStart(stampedReading(l)), stampedStart(stampedReading(l))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.True(t, w.back)
		require.False(t, a.back, "one more is before them")
		cancel()
		synctest.Wait()
		require.True(t, w2.back && a.back && b.back)
		require.ErrorIs(t, w2.err, context.Canceled)
		require.Equal(t, 3, l.ReadLockCount())
		require.Zero(t, l.QueueLength())
		require.NotZero(t, l.TryReadLockFor(0), "and the next reader does not find a ghost")
		for range 2 {
			l.UnlockRead(r)
		}
		l.UnlockRead(a.st)
		l.UnlockRead(b.st)
	})
}

func TestTwoWaitersThatGiveUpLeaveNothing(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		for range 50 {
			held := l.WriteLock()
			ctx, cancel := context.WithCancel(t.Context())
			ways := stampedWays(l, ctx)
			a, b := stampedStart(ways["write"][2]), stampedStart(ways["read"][2])
			cancel()
			synctest.Wait()
			require.True(t, a.back && b.back)
			l.UnlockWrite(held)
			stampedFree(t, l)
		}
	})
}

func TestACancelledWaiterWaitsForItsWaker(t *testing.T) {
	stampedBubble(t, func(t *testing.T, l *rwlock.StampedLock) {
		held := l.WriteLock()
		ctx, cancel := context.WithCancel(t.Context())
		w := stampedStart(func() (rwlock.Stamp, error) { return l.WriteLockContext(ctx) })
		finish := rwlock.BeginStampedWake(l)
		cancel()
		synctest.Wait()
		require.False(t, w.back, "the waker still has it in its hands")
		finish()
		synctest.Wait()
		require.ErrorIs(t, w.err, context.Canceled)
		l.UnlockWrite(held)
	})
}

func TestReleaseThatRacesWithACancellationLosesNothing(t *testing.T) {
	var l rwlock.StampedLock
	for i := range 500 {
		held := l.WriteLock()
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			var st rwlock.Stamp
			var err error
			if i%2 == 0 {
				st, err = l.WriteLockContext(ctx)
			} else {
				st, err = l.ReadLockContext(ctx)
			}
			if err == nil {
				l.Unlock(st)
			} else {
				assert.ErrorIs(t, err, context.Canceled)
				assert.Zero(t, st)
			}
		})
		wg.Go(func() { l.UnlockRead(l.ReadLock()) })
		locktest.Await(t, l.HasQueued, "a waiter")
		wg.Go(cancel)
		l.UnlockWrite(held)
		wg.Wait()
		stampedFree(t, &l)
	}
}

func TestManyTinyTimeLimitsLeaveAWorkingLock(t *testing.T) {
	var l rwlock.StampedLock
	count := 0
	var want, readers atomic.Int64
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for j := range 150 {
				var st rwlock.Stamp
				d := time.Duration(j%20) * time.Microsecond
				ctx, cancel := context.WithTimeout(context.Background(), d)
				switch i % 4 {
				case 0:
					st = l.TryWriteLockFor(d)
				case 1:
					st, _ = l.WriteLockContext(ctx)
				case 2:
					st = l.TryReadLockFor(d)
				case 3:
					st, _ = l.ReadLockContext(ctx)
				}
				cancel()
				if st.IsWriteLock() {
					assert.Zero(t, readers.Load())
					count++
					want.Add(1)
				} else if st != 0 {
					readers.Add(1)
				}
				if j%8 == 0 {
					runtime.Gosched()
				}
				if st.IsReadLock() {
					_ = count
					readers.Add(-1)
				}
				if st != 0 {
					l.Unlock(st)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int(want.Load()), count)
	stampedFree(t, &l)
}

func TestManyWaitAndHalfOfThemGiveUp(t *testing.T) {
	n := 40_000
	if locktest.Race {
		n = 6000 // it knows no more than 8128 goroutines
	}
	var l rwlock.StampedLock
	held := l.WriteLock()
	ctx, cancel := context.WithCancel(context.Background())
	var in, gaveUp atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var st rwlock.Stamp
			var err error
			switch {
			case i%2 == 0 && i%20 == 0:
				st = l.WriteLock()
			case i%2 == 0:
				st = l.ReadLock()
			case i%20 == 1:
				st, err = l.WriteLockContext(ctx)
			default:
				st, err = l.ReadLockContext(ctx)
			}
			if err != nil {
				gaveUp.Add(1)
				return
			}
			in.Add(1)
			l.Unlock(st)
		})
	}
	locktest.Await(t, func() bool { return l.QueueLength() == n }, "all to wait")
	cancel()
	locktest.Await(t, func() bool { return gaveUp.Load() == int64(n/2) }, "half of them to give up")
	require.Equal(t, n/2, l.QueueLength())
	l.UnlockWrite(held)
	wg.Wait()
	require.EqualValues(t, n/2, in.Load())
	stampedFree(t, &l)
}

func TestOneStampedServesInAndOutsideOfBubbles(t *testing.T) {
	var l rwlock.StampedLock
	contend := func() {
		var wg sync.WaitGroup
		count := 0
		for i := range 4 {
			wg.Go(func() {
				for range 50 {
					var st rwlock.Stamp
					if i%2 == 0 {
						st = l.WriteLock()
					} else {
						st = l.TryWriteLockFor(time.Hour)
					}
					count++
					runtime.Gosched()
					l.UnlockWrite(st)
				}
			})
		}
		wg.Wait()
		assert.Equal(t, 200, count)
	}
	for range 3 {
		contend()
		synctest.Test(t, func(*testing.T) { contend() })
	}
	stampedFree(t, &l)
}

// Views.

func TestTheViewsConformToTryLocker(t *testing.T) {
	waiting := func(l locks.TryLocker) int { return l.(interface{ QueueLength() int }).QueueLength() }
	t.Run("WriteLocker", func(t *testing.T) {
		lockstest.TestTryLocker(t, lockstest.Config{
			New:     func(testing.TB) locks.TryLocker { return new(rwlock.StampedLock).WriteLocker() },
			Waiting: waiting,
		})
	})
	t.Run("ReadLocker", func(t *testing.T) {
		var of sync.Map
		lockstest.TestTryLocker(t, lockstest.Config{
			New: func(testing.TB) locks.TryLocker {
				l := new(rwlock.StampedLock)
				of.Store(l.ReadLocker(), l.WriteLocker())
				return l.ReadLocker()
			},
			Exclusive: func(v locks.TryLocker) locks.TryLocker {
				w, _ := of.Load(v)
				return w.(locks.TryLocker)
			},
			Waiting: waiting,
		})
	})
}

func TestAViewReleasesAnyHold(t *testing.T) {
	var l rwlock.StampedLock
	type view interface {
		sync.Locker
		locks.TryLocker
		TryLock() bool
		TryLockFor(time.Duration) bool
	}
	r, w := l.ReadLocker().(view), l.WriteLocker().(view)
	require.Same(t, r, l.ReadLocker())
	for _, v := range []view{r, w} {
		locktest.PanicsWith(t, locks.ErrNotHeld, v.Unlock)
		require.ErrorIs(t, v.UnlockContext(t.Context()), locks.ErrNotHeld)
		require.ErrorIs(t, v.UnlockContext(nil), locks.ErrNotHeld)
	}
	l.WriteLock()
	locktest.PanicsWith(t, locks.ErrNotHeld, r.Unlock)
	require.ErrorIs(t, r.UnlockContext(t.Context()), locks.ErrNotHeld)
	require.False(t, r.TryLock() || w.TryLock() || r.TryLockFor(0) || w.TryLockFor(time.Microsecond))
	w.Unlock()
	st := l.ReadLock()
	r.Lock()
	require.True(t, r.TryLock() && r.TryLockFor(0))
	locktest.PanicsWith(t, locks.ErrNotHeld, w.Unlock)
	require.ErrorIs(t, w.UnlockContext(t.Context()), locks.ErrNotHeld)
	for range 3 {
		r.Unlock()
	}
	l.UnlockRead(st)
	w.Lock()
	require.NoError(t, w.UnlockContext(t.Context()))
	require.True(t, w.TryLock())
	w.Unlock()
	stampedFree(t, &l)
}

func TestAViewHasNoConditions(t *testing.T) {
	var l rwlock.StampedLock
	for _, v := range []any{l.ReadLocker(), l.WriteLocker()} {
		require.False(t, reflect.ValueOf(v).MethodByName("NewCond").IsValid())
	}
}

func TestANumberThatIsNoStampFitsNothing(t *testing.T) {
	for name, take := range map[string]func(l *rwlock.StampedLock) rwlock.Stamp{
		"nobody":   (*rwlock.StampedLock).TryOptimisticRead,
		"a reader": (*rwlock.StampedLock).ReadLock,
		"a writer": (*rwlock.StampedLock).WriteLock,
	} {
		t.Run(name, func(t *testing.T) {
			var l rwlock.StampedLock
			l.UnlockWrite(l.WriteLock())
			st := take(&l)
			for low := range rwlock.Stamp(1 << 14) { // whatever is below the version
				n := st&^(1<<14-1) | low
				if low == 1 || low == 2 || low == 4 {
					continue // of one mode
				}
				require.False(t, l.Validate(n), "%b", low)
				require.False(t, n.IsLock() || n.IsOptimisticRead(), "%b", low)
				converted := l.TryConvertToWriteLock(n) | l.TryConvertToReadLock(n) | l.TryConvertToOptimisticRead(n)
				require.Zero(t, converted, "%b", low)
			}
			locktest.PanicsWith(t, locks.ErrNotHeld, func() { l.Unlock(st | 1<<5) })
			if st.IsLock() {
				l.Unlock(st)
			}
		})
	}
}

package fair_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/lockstest"
)

func TestRWMutexConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:     func(testing.TB) locks.TryLocker { return new(fair.RWMutex).WriteLocker() },
		FIFO:    true,
		Waiting: func(l locks.TryLocker) int { return l.(*fair.RWMutex).QueueLength() },
	})
}

func TestRWMutexReadLockerConformsToTryLocker(t *testing.T) {
	of := map[locks.TryLocker]*fair.RWMutex{}
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(testing.TB) locks.TryLocker {
			rw := new(fair.RWMutex)
			of[rw.ReadLocker()], of[rw.WriteLocker()] = rw, rw
			return rw.ReadLocker()
		},
		Exclusive: func(l locks.TryLocker) locks.TryLocker { return of[l].WriteLocker() },
		FIFO:      true,
		Waiting:   func(l locks.TryLocker) int { return of[l].QueueLength() },
	})
}

// queue starts f in a goroutine and returns when it waits as the nth in rw's queue.
func queue(t *testing.T, wg *sync.WaitGroup, rw *fair.RWMutex, n int, f func()) {
	wg.Go(f)
	require.Eventually(t, func() bool { return rw.QueueLength() == n }, time.Minute, time.Microsecond*100)
}

func TestReadersAndWritersComeInByArrival(t *testing.T) {
	var rw fair.RWMutex
	var wg sync.WaitGroup
	var order []string
	var mu sync.Mutex
	note := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
	rw.Lock()
	var together sync.WaitGroup // the two readers hold it at the same time
	together.Add(2)
	read := func() {
		rw.RLock()
		together.Done()
		together.Wait()
		note("reader")
		rw.RUnlock()
	}
	queue(t, &wg, &rw, 1, read)
	queue(t, &wg, &rw, 2, read)
	queue(t, &wg, &rw, 3, func() { rw.Lock(); note("writer"); rw.Unlock() })
	queue(t, &wg, &rw, 4, func() { rw.RLock(); note("late reader"); rw.RUnlock() })
	rw.Unlock()
	wg.Wait()
	require.Equal(t, []string{"reader", "reader", "writer", "late reader"}, order)
}

func TestAReaderQueuesBehindAWaitingWriter(t *testing.T) {
	var rw fair.RWMutex
	var wg sync.WaitGroup
	rw.RLock()
	queue(t, &wg, &rw, 1, func() { rw.Lock(); rw.Unlock() })
	require.False(t, rw.TryRLockFor(0), "the fair try")
	require.True(t, rw.TryRLock(), "the barging try")
	rw.RUnlock()
	queue(t, &wg, &rw, 2, func() { rw.RLock(); rw.RUnlock() })
	require.True(t, rw.HasQueued())
	rw.RUnlock()
	wg.Wait()
	require.False(t, rw.HasQueued())
}

func TestReadersAndWritersAreListedByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rw fair.RWMutex
		rw.Lock()
		a := locktest.Start(locktest.Calling(rw.RLock), nil)
		b := locktest.Start(locktest.Calling(rw.Lock), nil)
		c := locktest.Start(locktest.Calling(rw.RLock), nil)
		require.Equal(t, []locks.Owner{a.ID, c.ID}, rw.QueuedReaders())
		require.Equal(t, []locks.Owner{b.ID}, rw.QueuedWriters())
		require.False(t, rw.IsReadLocked())
		rw.Unlock()
		synctest.Wait()
		require.True(t, rw.IsReadLocked())
		require.Equal(t, []locks.Owner{c.ID}, rw.QueuedReaders())
		rw.RUnlock() // of a
		rw.Unlock()  // of b
		rw.RUnlock() // of c
		synctest.Wait()
		require.False(t, rw.IsReadLocked())
	})
}

func TestAWriterWaitsForASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			rw    fair.RWMutex
			ready bool
			seen  bool
			c     = rw.NewCond()
		)
		go func() {
			rw.Lock()
			defer rw.Unlock()
			for !ready {
				c.Wait()
			}
			seen = true
		}()
		synctest.Wait()
		rw.RLock() // the wait has released the lock
		rw.RUnlock()
		rw.Lock()
		ready = true
		c.Signal()
		rw.Unlock()
		synctest.Wait()
		rw.RLock()
		defer rw.RUnlock()
		require.True(t, seen)
	})
}

func TestAReaderCannotWaitForASignal(t *testing.T) {
	var rw fair.RWMutex
	c := rw.NewCond()
	rw.RLock()
	require.ErrorIs(t, c.WaitContext(t.Context()), locks.ErrNotHeld)
	require.Equal(t, 1, rw.ReadLockCount(), "it keeps its hold")
	rw.RUnlock()
	require.ErrorIs(t, c.WaitContext(t.Context()), locks.ErrNotHeld)
}

func TestACancelledWriterAdmitsTheReadersBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rw fair.RWMutex
		ctx, cancel := context.WithCancel(t.Context())
		rw.RLock()
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- rw.LockContext(ctx) }()
		synctest.Wait()
		read := make(chan struct{})
		go func() { rw.RLock(); close(read) }()
		synctest.Wait()
		require.Equal(t, 2, rw.QueueLength())
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled)
		<-read
		require.Equal(t, 2, rw.ReadLockCount())
		rw.RUnlock()
		rw.RUnlock()
		require.True(t, rw.TryLock())
	})
}

func TestAnotherGoroutineMayRelease(t *testing.T) {
	var rw fair.RWMutex
	var wg sync.WaitGroup
	rw.RLock()
	wg.Go(rw.RUnlock)
	wg.Wait()
	rw.Lock()
	wg.Go(rw.Unlock)
	wg.Wait()
	require.Zero(t, rw.ReadLockCount())
	require.False(t, rw.IsWriteLocked())
}

func TestAReleaseOfTheOtherKindIsRefused(t *testing.T) {
	var rw fair.RWMutex
	ctx := t.Context()
	refused := func(unlock func(), unlockContext func(context.Context) error) {
		t.Helper()
		locktest.PanicsWith(t, locks.ErrNotHeld, unlock)
		require.ErrorIs(t, unlockContext(ctx), locks.ErrNotHeld)
	}
	refused(rw.Unlock, rw.UnlockContext)
	refused(rw.RUnlock, rw.RUnlockContext)
	rw.RLock()
	refused(rw.Unlock, rw.UnlockContext)
	require.Equal(t, 1, rw.ReadLockCount())
	rw.RUnlock()
	rw.Lock()
	refused(rw.RUnlock, rw.RUnlockContext)
	require.True(t, rw.IsWriteLocked())

	// Also while others wait, when a release goes through the queue.
	var wg sync.WaitGroup
	queue(t, &wg, &rw, 1, func() { rw.RLock(); rw.RUnlock() })
	refused(rw.RUnlock, rw.RUnlockContext)
	require.True(t, rw.IsWriteLocked())
	rw.Unlock()
	wg.Wait()
	rw.RLock()
	queue(t, &wg, &rw, 1, func() { rw.Lock(); rw.Unlock() })
	refused(rw.Unlock, rw.UnlockContext)
	require.Equal(t, 1, rw.ReadLockCount())
	rw.RUnlock()
	wg.Wait()
}

func TestATimeLimitEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rw fair.RWMutex
		rw.Lock()
		began := time.Now()
		require.False(t, rw.TryLockFor(time.Second))
		require.False(t, rw.TryRLockFor(time.Second))
		require.Equal(t, 2*time.Second, time.Since(began))
		rw.Unlock()
		require.True(t, rw.TryRLockFor(0))
		require.False(t, rw.TryLockFor(0))
		rw.RUnlock()
		require.True(t, rw.TryLockFor(0))
		rw.Unlock()
	})
}

// As in the sync package's own test, a writer counts 10,000, and a reader 1.
func TestReadersAndWritersExcludeEachOther(t *testing.T) {
	for _, readers := range []int{1, 3, 10} {
		var rw fair.RWMutex
		var active atomic.Int32
		var wg sync.WaitGroup
		work := func(weight int32, lock, unlock func()) func() {
			return func() {
				for i := range 1000 {
					lock()
					if n := active.Add(weight); n < weight || n >= 20_000 || weight > 1 && n != weight {
						t.Errorf("%d active", n)
					}
					for range i % 50 {
					}
					active.Add(-weight)
					unlock()
				}
			}
		}
		read := work(1, rw.RLock, rw.RUnlock)
		wg.Go(work(10_000, rw.Lock, rw.Unlock))
		for range readers {
			wg.Go(read)
			wg.Go(work(1, rw.RLocker().Lock, rw.RLocker().Unlock))
		}
		wg.Go(work(10_000, rw.Lock, rw.Unlock))
		wg.Go(work(10_000, func() {
			for !rw.TryLockFor(time.Microsecond) {
			}
		}, rw.Unlock))
		wg.Go(work(1, func() {
			for !rw.TryRLockFor(time.Microsecond) {
			}
		}, rw.RUnlock))
		wg.Wait()
		require.False(t, rw.HasQueued())
		require.True(t, rw.TryLock())
	}
}

func TestRWMutexSaysWhoHoldsAndWaits(t *testing.T) {
	var rw fair.RWMutex
	require.Contains(t, rw.String(), "[unlocked, 0 queued]")
	rw.RLock()
	require.Contains(t, rw.String(), "[1 read holds, 0 queued]")
	rw.RUnlock()
	rw.Lock()
	var wg sync.WaitGroup
	owner := make(chan locks.Owner, 1)
	queue(t, &wg, &rw, 1, func() {
		owner <- locks.CurrentOwner(context.Background())
		rw.RLock()
		rw.RUnlock()
	})
	o := <-owner
	require.Contains(t, rw.String(), "[write-locked, 1 queued]")
	require.Equal(t, []locks.Owner{o}, rw.Queued())
	require.True(t, rw.IsQueued(o))
	rw.Unlock()
	wg.Wait()
}

func TestUncontendedRWMutexAllocatesNothing(t *testing.T) {
	var rw fair.RWMutex
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		rw.RLock()
		rw.RUnlock()
		rw.Lock()
		rw.Unlock()
		_ = rw.LockContext(ctx)
		_ = rw.UnlockContext(ctx)
		_ = rw.RLockContext(ctx)
		_ = rw.RUnlockContext(ctx)
	}))
}

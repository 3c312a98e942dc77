package named_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/testkit/locktest"
	"github.com/jucgo/locks/named"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLockersOfOneNameExcludeEachOtherAndOthersDoNot(t *testing.T) {
	ls := named.New()
	ctx, other := t.Context(), locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, ls.Locker("a").LockContext(ctx))
	ok, err := ls.Locker("a").TryLockContext(other)
	require.NoError(t, err)
	require.False(t, ok)
	ok, err = ls.Locker("b").TryLockContext(other)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 2, ls.Len())
	require.NoError(t, ls.Locker("b").UnlockContext(other))
	require.NoError(t, ls.Locker("a").UnlockContext(ctx))
	require.Zero(t, ls.Len())
}

func TestTheZeroSetIsEmptyAndItsFirstUsersGetOneLock(t *testing.T) {
	for range 100 {
		var ls named.Locks
		require.Zero(t, ls.Len())
		require.False(t, ls.For("x").IsLocked())
		var wg sync.WaitGroup
		n := 0
		for range 8 {
			wg.Go(func() {
				ls.For("x").Lock()
				defer ls.For("x").Unlock()
				n++
			})
		}
		wg.Wait()
		require.Equal(t, 8, n)
		require.False(t, ls.For("x").IsFair())
		require.Zero(t, ls.Len())
	}
}

func TestALockIsReentrantAndExistsUntilTheLastRelease(t *testing.T) {
	ls := named.New()
	l := ls.For("a")
	l.Lock()
	require.True(t, l.TryLock())
	require.True(t, l.TryLockFor(0))
	require.NoError(t, l.LockContext(t.Context()))
	require.Equal(t, 4, l.HoldCount())
	for range 3 {
		l.Unlock()
		require.Equal(t, 1, ls.Len())
	}
	require.True(t, l.IsHeld())
	require.NoError(t, l.UnlockContext(t.Context()))
	require.Zero(t, ls.Len())
	require.False(t, l.IsLocked())
	require.Zero(t, l.Owner())
}

func TestNothingIsLeftByAnAttemptThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := named.New()
		l := ls.For("a")
		done, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, l.LockContext(done), context.Canceled)
		_, err := l.TryLockContext(done)
		require.ErrorIs(t, err, context.Canceled)
		var none context.Context
		require.ErrorIs(t, l.LockContext(none), locks.ErrNilContext)
		require.Zero(t, ls.Len())

		l.Lock()
		var wg sync.WaitGroup
		wg.Go(func() {
			require.False(t, l.TryLock())
			require.False(t, l.TryLockFor(time.Second))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := l.LockContext(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "named: a: ")
		})
		wg.Wait()
		l.Unlock()
		require.Zero(t, ls.Len())
	})
}

func TestMisuseIsReportedAndLeavesNothing(t *testing.T) {
	ls := named.New()
	l := ls.For("a")
	require.PanicsWithValue(t, locks.ErrNotHeld, l.Unlock)
	require.ErrorIs(t, l.UnlockContext(t.Context()), locks.ErrNotHeld)
	require.Zero(t, ls.Len())

	other := locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, l.LockContext(other))
	require.PanicsWithValue(t, locks.ErrNotHeld, l.Unlock)
	require.ErrorIs(t, l.UnlockContext(t.Context()), locks.ErrNotHeld)
	require.True(t, l.IsLocked())
	require.NoError(t, l.UnlockContext(other))
	require.Zero(t, ls.Len())

	require.Panics(t, func() { ls.For([]int{1}) })
	require.Panics(t, func() { ls.For(any([1]any{[]int{1}})) })
	require.Panics(t, func() { ls.For(math.NaN()) })
}

func TestKeysAreEqualAsInAMap(t *testing.T) {
	type id struct{ a, b int }
	ls := named.New()
	keys := []any{nil, 1, int64(1), "1", 1.0, id{1, 2}, id{2, 1}, &id{}}
	for _, k := range keys {
		ls.For(k).Lock()
	}
	require.Equal(t, len(keys), ls.Len())
	require.Equal(t, 1, ls.For(id{1, 2}).HoldCount())
	for _, k := range keys {
		ls.For(k).Unlock()
	}
	require.Zero(t, ls.Len())
}

func TestAWaiterKeepsTheLockInExistence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := named.New(named.WithPolicy(fair.FIFO))
		l := ls.For("a")
		l.Lock()
		held := make(chan bool)
		go func() {
			l.Lock()
			held <- true
			l.Unlock()
		}()
		synctest.Wait()
		require.Equal(t, 1, l.QueueLength())
		l.Unlock()
		require.True(t, l.IsLocked(), "handed over, in the same entry")
		<-held
		synctest.Wait()
		require.Zero(t, ls.Len())
	})
}

func TestManyGoroutinesOnFewKeysKeepTheirCountsAndLeaveNothing(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprint("procs=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			const keys, goroutines, rounds = 5, 16, 300
			ls := named.New()
			var counts [keys]int // each guarded by its key's lock
			var got [goroutines]int
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(g), 2))
					for range rounds {
						k := r.IntN(keys)
						l := ls.For(k)
						switch r.IntN(4) {
						case 0:
							l.Lock()
						case 1:
							if !l.TryLock() {
								continue
							}
						case 2:
							if !l.TryLockFor(time.Duration(r.IntN(50)) * time.Microsecond) {
								continue
							}
						case 3:
							ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(50))*time.Microsecond)
							err := l.LockContext(ctx)
							cancel()
							if err != nil {
								continue
							}
						}
						counts[k]++
						got[g]++
						l.Unlock()
					}
				})
			}
			wg.Wait()
			want, have := 0, 0
			for _, n := range got {
				want += n
			}
			for _, n := range counts {
				have += n
			}
			require.Equal(t, want, have)
			require.Zero(t, ls.Len())
		})
	}
}

func TestAnExplicitOwnerLocksInOneGoroutineAndUnlocksInAnother(t *testing.T) {
	ls := named.New()
	ctx := locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, ls.Locker("job").LockContext(ctx))
	failed := make(chan error)
	go func() { failed <- ls.Locker("job").UnlockContext(ctx) }()
	require.NoError(t, <-failed)
	require.Zero(t, ls.Len())
}

func TestMultiOverNamesTakesAllOrNone(t *testing.T) {
	ls := named.New()
	ctx, other := t.Context(), locks.WithOwner(t.Context(), locks.NewOwner())
	both := locks.Multi(ls.Locker("b"), ls.Locker("a"))
	require.NoError(t, both.LockContext(ctx))
	require.Equal(t, 2, ls.Len())
	ok, err := locks.Multi(ls.Locker("c"), ls.Locker("b")).TryLockContext(other)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, both.UnlockContext(ctx))
	require.Zero(t, ls.Len())
}

func ExampleNew() {
	accounts := named.New(named.WithPolicy(fair.FIFO))

	err := locks.Do(context.Background(), accounts.Locker("alice"), func(context.Context) error {
		fmt.Println("in use:", accounts.Len())
		return errors.New("out of money")
	})
	fmt.Println(err)
	fmt.Println("in use:", accounts.Len())
	// Output:
	// in use: 1
	// out of money
	// in use: 0
}

func ExampleLocks_For() {
	type seat struct{ row, number int }
	seats := named.New()

	l := seats.For(seat{12, 3})
	l.Lock()
	defer l.Unlock()
	fmt.Println(seats.For(seat{12, 3}).IsHeld(), seats.For(seat{12, 4}).IsHeld())
	// Output: true false
}

func TestAnUncontendedLockOfAKeyAllocatesNothing(t *testing.T) {
	ls := named.New()
	a, b, ctx := ls.For("a"), ls.For(7), t.Context()
	allocs := testing.AllocsPerRun(300, func() {
		a.Lock()
		a.Lock()
		b.Lock()
		a.Unlock()
		a.Unlock()
		b.Unlock()
		_ = a.LockContext(ctx) == nil && a.UnlockContext(ctx) == nil
		_ = b.TryLockFor(time.Second)
		b.Unlock()
	})
	if !locktest.Race { // under which pools forget at random
		require.Zero(t, allocs)
	}
	require.Zero(t, ls.Len())
}

func TestAConditionOfAKeyGivesUpAllHoldsAndRestoresThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := named.New().For("a")
		c := l.NewCond()
		var wg sync.WaitGroup
		wg.Go(func() {
			l.Lock()
			l.Lock()
			c.Wait()
			require.Equal(t, 2, l.HoldCount())
			l.Unlock()
			l.Unlock()
		})
		synctest.Wait()
		require.True(t, l.TryLock())
		require.True(t, l.HasWaiters(c))
		c.Signal()
		require.False(t, l.HasWaiters(c))
		require.True(t, l.HasQueued())
		require.Len(t, l.Queued(), 1)
		require.True(t, l.IsQueued(l.Queued()[0]))
		l.Unlock()
		wg.Wait()
	})
}

func TestAConditionOfAKeyRefusesWhoeverDoesNotHoldTheLock(t *testing.T) {
	ls := named.New()
	l := ls.For("a")
	c := condition.New(l)
	l.Lock()
	var wg sync.WaitGroup
	wg.Go(func() {
		require.PanicsWithValue(t, locks.ErrNotHeld, c.Wait)
		require.PanicsWithValue(t, locks.ErrNotHeld, c.Signal)
		require.ErrorIs(t, c.WaitContext(t.Context()), locks.ErrNotHeld)
		require.PanicsWithValue(t, locks.ErrNotHeld, func() { l.HasWaiters(c) })
		require.PanicsWithValue(t, locks.ErrNotHeld, l.AssertHeld)
	})
	wg.Wait()
	l.AssertHeld()
	require.False(t, c.HasWaiters())
	require.PanicsWithValue(t, locks.ErrForeign, func() { l.HasWaiters(nil) })
	require.PanicsWithValue(t, locks.ErrForeign, func() { l.HasWaiters(ls.For("b").NewCond()) })
	require.PanicsWithValue(t, locks.ErrForeign, func() { ls.For("c").HasWaiters(c) })
	l.Unlock()
}

func TestALockExistsForAsLongAsItsCondition(t *testing.T) {
	ls := named.New()
	c := ls.For("a").NewCond()
	require.Equal(t, 1, ls.Len())
	ls.For("a").Lock()
	require.NotPanics(t, c.Signal)
	ls.For("a").Unlock()
	runtime.GC()
	require.Equal(t, 1, ls.Len())
	runtime.KeepAlive(c)
	require.Eventually(t, func() bool { runtime.GC(); return ls.Len() == 0 }, 10*time.Second, time.Millisecond)
}

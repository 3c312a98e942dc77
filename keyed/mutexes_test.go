package keyed_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/keyed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyLocksOfOneKeyExcludeEachOther(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	ctx, other := t.Context(), locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, ls.Of("a").LockContext(ctx))
	ok, err := ls.Of("a").TryLockContext(other)
	require.NoError(t, err)
	require.False(t, ok)
	ok, err = ls.Of("b").TryLockContext(other)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 2, ls.Len())
	require.NoError(t, ls.Of("b").UnlockContext(other))
	require.NoError(t, ls.Of("a").UnlockContext(ctx))
	require.Zero(t, ls.Len())
}

func TestAZeroSetsFirstUsersGetOneLock(t *testing.T) {
	for range 100 {
		var ls keyed.Mutexes[string]
		require.Zero(t, ls.Len())
		require.False(t, ls.Of("x").IsLocked())
		var wg sync.WaitGroup
		n := 0
		for range 8 {
			wg.Go(func() {
				ls.Of("x").Lock()
				defer ls.Of("x").Unlock()
				n++
			})
		}
		wg.Wait()
		require.Equal(t, 8, n)
		require.False(t, ls.Of("x").IsFair())
		require.Zero(t, ls.Len())
	}
}

func TestALockExistsUntilItsLastRelease(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	l := ls.Of("a")
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
		ls := new(keyed.Mutexes[string])
		l := ls.Of("a")
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
			require.ErrorContains(t, err, `keyed: LockContext of "a": context deadline exceeded`)
		})
		wg.Wait()
		l.Unlock()
		require.Zero(t, ls.Len())
	})
}

func TestMisuseIsReportedAndLeavesNothing(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	l := ls.Of("a")
	require.PanicsWithError(t, `keyed: Unlock of "a": lock not held by the caller: the keyed.Mutex is free`, l.Unlock)
	require.ErrorIs(t, l.UnlockContext(t.Context()), locks.ErrNotHeld)
	require.Zero(t, ls.Len())

	other := locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, l.LockContext(other))
	locktest.PanicsWith(t, locks.ErrNotHeld, l.Unlock)
	require.ErrorIs(t, l.UnlockContext(t.Context()), locks.ErrNotHeld)
	require.True(t, l.IsLocked())
	require.NoError(t, l.UnlockContext(other))
	require.Zero(t, ls.Len())

	var any keyed.Mutexes[any]
	require.Panics(t, func() { any.Of([]int{1}) })
	require.Panics(t, func() { any.Of([1]interface{}{[]int{1}}) })
}

// A map would keep such a key for ever. Here it would be a lock that no unlock finds.
func TestAKeyThatIsNotEqualToItselfIsRefused(t *testing.T) {
	type point struct{ x, y float64 }
	var floats keyed.Mutexes[float64]
	var points keyed.Mutexes[point]
	var anything keyed.Mutexes[any]
	for name, of := range map[string]func(){
		"a NaN":                 func() { floats.Of(math.NaN()) },
		"a NaN in a struct":     func() { points.Of(point{y: math.NaN()}) },
		"a NaN in an interface": func() { anything.Of(math.NaN()) },
		"both":                  func() { anything.Of(point{x: math.NaN()}) },
	} {
		require.PanicsWithValue(t, "keyed: key is not equal to itself", of, name)
	}
	require.Zero(t, floats.Len()+points.Len()+anything.Len())
}

func TestKeysAreEqualAsInAMap(t *testing.T) {
	type id struct{ a, b int }
	ls := new(keyed.Mutexes[any])
	keys := []any{nil, 1, int64(1), "1", 1.0, id{1, 2}, id{2, 1}, &id{}}
	for _, k := range keys {
		ls.Of(k).Lock()
	}
	require.Equal(t, len(keys), ls.Len())
	require.Equal(t, 1, ls.Of(id{1, 2}).HoldCount())
	for _, k := range keys {
		ls.Of(k).Unlock()
	}
	require.Zero(t, ls.Len())
}

func TestAWaiterKeepsTheLockInExistence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := keyed.New[string](locks.FIFO)
		l := ls.Of("a")
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

func TestManyGoroutinesOnFewKeysLeaveNothing(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprint("procs=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			const keys, goroutines, rounds = 5, 16, 300
			ls := new(keyed.Mutexes[int])
			var counts [keys]int // each guarded by its key's lock
			var got [goroutines]int
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(g), 2))
					for range rounds {
						k := r.IntN(keys)
						l := ls.Of(k)
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
							limit := time.Duration(r.IntN(50)) * time.Microsecond
							ctx, cancel := context.WithTimeout(context.Background(), limit)
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

func TestAnExplicitOwnerMayUnlockInAnotherGoroutine(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	ctx := locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, ls.Of("job").LockContext(ctx))
	failed := make(chan error)
	go func() { failed <- ls.Of("job").UnlockContext(ctx) }()
	require.NoError(t, <-failed)
	require.Zero(t, ls.Len())
}

func TestMultiOverNamesTakesAllOrNone(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	ctx, other := t.Context(), locks.WithOwner(t.Context(), locks.NewOwner())
	both := locks.Multi(ls.Of("b"), ls.Of("a"))
	require.NoError(t, both.LockContext(ctx))
	require.Equal(t, 2, ls.Len())
	ok, err := locks.Multi(ls.Of("c"), ls.Of("b")).TryLockContext(other)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, both.UnlockContext(ctx))
	require.Zero(t, ls.Len())
}

func TestAnUncontendedLockOfAKeyAllocatesNothing(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	a, b, ctx := ls.Of("a"), ls.Of("b"), t.Context()
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

func TestAConditionOfAKeyRestoresAllHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(keyed.Mutexes[string]).Of("a")
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

func TestAConditionOfAKeyRefusesStrangers(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	l := ls.Of("a")
	c := condition.New(l)
	l.Lock()
	var wg sync.WaitGroup
	wg.Go(func() {
		locktest.PanicsWith(t, locks.ErrNotHeld, c.Wait)
		locktest.PanicsWith(t, locks.ErrNotHeld, c.Signal)
		require.ErrorIs(t, c.WaitContext(t.Context()), locks.ErrNotHeld)
		locktest.PanicsWith(t, locks.ErrNotHeld, func() { l.HasWaiters(c) })
	})
	wg.Wait()
	require.False(t, c.HasWaiters())
	require.PanicsWithValue(t, locks.ErrForeign, func() { l.HasWaiters(nil) })
	require.PanicsWithValue(t, locks.ErrForeign, func() { l.HasWaiters(ls.Of("b").NewCond()) })
	require.PanicsWithValue(t, locks.ErrForeign, func() { ls.Of("c").HasWaiters(c) })
	l.Unlock()
}

func TestALockExistsAsLongAsItsCondition(t *testing.T) {
	ls := new(keyed.Mutexes[string])
	c := ls.Of("a").NewCond()
	require.Equal(t, 1, ls.Len())
	ls.Of("a").Lock()
	require.NotPanics(t, c.Signal)
	ls.Of("a").Unlock()
	runtime.GC()
	require.Equal(t, 1, ls.Len())
	runtime.KeepAlive(c)
	require.Eventually(t, func() bool { runtime.GC(); return ls.Len() == 0 }, time.Minute, time.Millisecond)
}

// Nothing but the wait refers to the condition.
func TestAWaitKeepsItsConditionAndItsLock(t *testing.T) {
	for name, owner := range map[string]func(ctx context.Context) context.Context{
		"goroutine":      func(ctx context.Context) context.Context { return ctx },
		"explicit owner": func(ctx context.Context) context.Context { return locks.WithOwner(ctx, locks.NewOwner()) },
	} {
		t.Run(name, func(t *testing.T) {
			ls := new(keyed.Mutexes[string])
			waits, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			begun := make(chan struct{})
			wg.Go(func() {
				l, o := ls.Of("a"), owner(t.Context())
				ctx := locks.WithOwner(waits, locks.CurrentOwner(o))
				assert.NoError(t, l.LockContext(o))
				close(begun)
				assert.ErrorIs(t, l.NewCond().WaitContext(ctx), context.Canceled)
				assert.True(t, l.IsHeldContext(o))
				assert.NoError(t, l.UnlockContext(o))
			})
			<-begun
			for l := ls.Of("a"); l.IsLocked(); {
				runtime.Gosched()
			}
			for range 20 {
				runtime.GC()
				runtime.Gosched()
			}
			n := ls.Len()
			cancel()
			wg.Wait()
			require.Equal(t, 1, n)
		})
	}
}

func TestAMutexOfNoSetSaysSo(t *testing.T) {
	var l keyed.Mutex[string]
	const why = "keyed: a zero Mutex belongs to no set: use Mutexes.Of"
	require.PanicsWithValue(t, why, l.Lock)
	require.PanicsWithValue(t, why, func() { _ = l.LockContext(t.Context()) })
	require.PanicsWithValue(t, why, func() { l.IsLocked() })
	require.PanicsWithValue(t, why, func() { l.IsFair() })
}

func TestAHelperAsksForAHoldOfAnExplicitOwner(t *testing.T) {
	l := new(keyed.Mutexes[string]).Of("a")
	mine := locks.WithOwner(context.Background(), locks.NewOwner())
	require.False(t, l.IsHeldContext(mine))
	require.NoError(t, l.LockContext(mine))
	require.True(t, l.IsHeldContext(mine))
	require.Equal(t, 1, l.HoldCountContext(mine))
	require.False(t, l.IsHeldContext(context.Background()))
	require.NoError(t, l.UnlockContext(mine))
	require.Zero(t, l.HoldCountContext(mine))
}

func TestEachConditionOfAKeyHasOwnWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(keyed.Mutexes[string]).Of("a")
		full, empty := l.NewCond(), l.NewCond()
		var wg sync.WaitGroup
		wg.Go(func() {
			l.Lock()
			defer l.Unlock()
			full.Wait()
		})
		synctest.Wait()
		l.Lock()
		empty.Broadcast()
		require.True(t, l.HasWaiters(full))
		full.Signal()
		require.False(t, l.HasWaiters(full))
		l.Unlock()
		wg.Wait()
	})
}

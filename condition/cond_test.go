package condition_test

import (
	"context"
	"math"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/spin"
)

// chanLock is a foreign lock. Unlike a sync.Mutex it blocks durably, so that the tests in bubbles
// can wait until all goroutines block.
type chanLock chan struct{}

func (l chanLock) Lock()   { l <- struct{}{} }
func (l chanLock) Unlock() { <-l }

// fixture is a lock and a condition of it.
type fixture struct {
	sync.Locker
	c    *condition.Cond
	ours locktest.Lock // nil if the lock is foreign
	kind locktest.Kind
}

// queued checks that n goroutines wait for the lock. A foreign lock cannot tell.
func (f *fixture) queued(t *testing.T, n int) {
	t.Helper()
	if f.ours != nil {
		require.Equal(t, n, f.ours.QueueLength(), "in the lock's queue")
	}
}

// waiting checks that n goroutines wait for a signal. The lock is held.
func (f *fixture) waiting(t *testing.T, n int) {
	t.Helper()
	require.Equal(t, n, f.c.WaitQueueLength(), "in the condition's queue")
	require.Equal(t, n > 0, f.c.HasWaiters())
	require.Len(t, f.c.Waiters(), n)
}

// wait starts a goroutine that locks, makes the call, reports the result of the call, and unlocks.
func (f *fixture) wait(call func() (bool, error)) *locktest.Waiter {
	return f.waitThen(call, func() {})
}

func (f *fixture) waitThen(call func() (bool, error), then func()) *locktest.Waiter {
	return locktest.Start(func() (bool, error) {
		f.Lock()
		defer f.Unlock()
		ok, err := call()
		then()
		return ok, err
	}, nil)
}

func (f *fixture) plain() (bool, error) { f.c.Wait(); return true, nil }

func (f *fixture) until(ctx context.Context) func() (bool, error) {
	return func() (bool, error) { err := f.c.WaitContext(ctx); return err == nil, err }
}

func (f *fixture) in(d time.Duration) func() (bool, error) {
	return func() (bool, error) { return f.c.WaitUntil(time.Now().Add(d)), nil }
}

// every runs test in a bubble, over every kind of lock. These include foreign locks, and the locks
// of this module whose queue the condition's waiters join one by one. At the end no goroutine may
// wait, and the lock must work.
func every(t *testing.T, test func(t *testing.T, f *fixture)) {
	ours(t, test)
	apart(t, test)
	t.Run("foreign", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := make(chanLock, 1)
			f := &fixture{Locker: l, c: condition.New(l)}
			test(t, f)
			synctest.Wait()
			l.Lock()
			f.waiting(t, 0)
			l.Unlock()
		})
	})
}

// apart is every for the locks of this module whose queue a condition's waiters cannot be moved to.
func apart(t *testing.T, test func(t *testing.T, f *fixture)) {
	for _, k := range locktest.Apart() {
		t.Run(k.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := k.New()
				f := &fixture{Locker: l, c: l.NewCond()}
				test(t, f)
				synctest.Wait()
				locktest.Works(t, l)
				l.Lock()
				f.waiting(t, 0)
				l.Unlock()
			})
		})
	}
}

// ours is every for locks on the queued synchronizer.
func ours(t *testing.T, test func(t *testing.T, f *fixture)) {
	for _, k := range locktest.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := k.New()
				f := &fixture{Locker: l, c: l.NewCond(), ours: l, kind: k}
				test(t, f)
				synctest.Wait()
				locktest.Works(t, l)
				l.Lock()
				f.waiting(t, 0)
				l.Unlock()
			})
		})
	}
}

func TestASignalMovesTheWaiterAtOnce(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		a, b := f.wait(f.plain), f.wait(f.plain)
		f.Lock()
		f.waiting(t, 2)
		f.queued(t, 0)
		require.Equal(t, []locks.Owner{a.ID, b.ID}, f.c.Waiters())
		f.c.Signal()
		f.waiting(t, 1)
		f.queued(t, 1)
		synctest.Wait()
		require.False(t, a.Back, "the lock is not free yet")
		f.c.Signal()
		f.waiting(t, 0)
		f.queued(t, 2)
		f.Unlock()
		synctest.Wait()
		require.True(t, a.OK && b.OK)
	})
}

func TestASignalWithoutWaitersIsNotRemembered(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		f.Lock()
		f.c.Signal()
		f.c.Broadcast()
		f.Unlock()
		a := f.wait(f.plain)
		require.False(t, a.Back)
		f.Lock()
		f.c.Signal()
		f.Unlock()
		synctest.Wait()
		require.True(t, a.OK)
	})
}

func TestSignalsGoToTheLongestWaiter(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		const n = 10
		var order []int
		for i := range n {
			f.waitThen(f.plain, func() { order = append(order, i) })
		}
		for i := range n {
			f.Lock()
			f.c.Signal()
			f.Unlock()
			synctest.Wait()
			require.Len(t, order, i+1, "one signal, one waiter")
		}
		require.IsIncreasing(t, order)
	})
}

func TestSignalsUnderOneHoldKeepTheOrder(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		const n = 10
		var order []int
		for i := range n {
			f.waitThen(f.plain, func() { order = append(order, i) })
		}
		f.Lock()
		for range n {
			f.c.Signal()
		}
		f.Unlock()
		synctest.Wait()
		require.Len(t, order, n)
		require.IsIncreasing(t, order)
	})
}

func TestABroadcastMovesAllInTheirOrder(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		const n = 10
		var order []int
		for i := range n {
			f.waitThen(f.plain, func() { order = append(order, i) })
		}
		f.Lock()
		f.waiting(t, n)
		f.c.Broadcast()
		f.waiting(t, 0)
		f.queued(t, n)
		f.Unlock()
		synctest.Wait()
		require.Len(t, order, n)
		require.IsIncreasing(t, order)
	})
}

func TestASignalledWaiterQueuesBehindTheLocksWaiters(t *testing.T) {
	ours(t, func(t *testing.T, f *fixture) {
		var order []string
		f.waitThen(f.plain, func() { order = append(order, "signalled") })
		f.Lock()
		locktest.Start(locktest.Locking(f.ours), func() { order = append(order, "early"); f.Unlock() })
		f.c.Signal()
		locktest.Start(locktest.Locking(f.ours), func() { order = append(order, "late"); f.Unlock() })
		f.Unlock()
		synctest.Wait()
		require.Equal(t, []string{"early", "signalled", "late"}, order)
	})
}

func TestEachConditionOfALockHasOwnWaiters(t *testing.T) {
	ours(t, func(t *testing.T, f *fixture) {
		g := &fixture{Locker: f.Locker, c: condition.New(f.ours), ours: f.ours}
		a, b := f.wait(f.plain), g.wait(g.plain)
		f.Lock()
		f.waiting(t, 1)
		g.waiting(t, 1)
		g.c.Broadcast()
		f.waiting(t, 1)
		g.waiting(t, 0)
		f.Unlock()
		synctest.Wait()
		require.False(t, a.Back)
		require.True(t, b.OK)
		f.Lock()
		f.c.Signal()
		f.Unlock()
	})
}

func TestNewUsesTheConditionsOfOurLock(t *testing.T) {
	var m reentrant.Mutex
	c := condition.New(&m)
	locktest.PanicsWith(t, locks.ErrNotHeld, c.Signal)
	m.Lock()
	require.False(t, m.HasWaiters(c)) // not ErrForeign
	m.Unlock()
}

func TestAConditionTellsItsLock(t *testing.T) {
	ours := []sync.Locker{new(fair.Mutex), new(fair.BargingMutex), new(fair.RWMutex), new(reentrant.Mutex),
		new(rwlock.RWMutex), new(spin.Mutex), new(spin.MCS), new(spin.Ticket), new(keyed.Mutexes[string]).Of("it")}
	for _, l := range append(ours, new(sync.Mutex), make(chanLock, 1)) {
		require.True(t, l == condition.New(l).Locker(), "%T", l)
		if ours, ok := l.(interface{ NewCond() *condition.Cond }); ok {
			require.True(t, l == ours.NewCond().Locker(), "%T", l)
			require.Equal(t, usesTheQueue(ours.NewCond()), usesTheQueue(condition.New(l)), "%T", l)
		}
	}
	require.Nil(t, new(condition.Cond).Locker())
	var rw rwlock.RWMutex
	view := rw.WriteLocker().(sync.Locker)
	c := condition.New(view)
	require.True(t, view == c.Locker())
	rw.Lock()
	defer rw.Unlock()
	require.False(t, rw.HasWaiters(c)) // not ErrForeign
	var other rwlock.RWMutex
	other.Lock()
	defer other.Unlock()
	locktest.PanicsWith(t, locks.ErrForeign, func() { other.HasWaiters(c) })
}

// usesTheQueue reports whether the waiters of c move to the queue of the lock.
func usesTheQueue(c *condition.Cond) bool {
	return reflect.ValueOf(c).Elem().FieldByName("outer").IsNil()
}

// ownCond is a lock of a program whose NewCond calls New, and so is ownCondOf, which embeds a lock of
// this module.
type (
	ownCond   struct{ sync.Mutex }
	ownCondOf struct{ reentrant.Mutex }
)

func (l *ownCond) NewCond() *condition.Cond   { return condition.New(l) }
func (l *ownCondOf) NewCond() *condition.Cond { return condition.New(l) }

func TestAProgramsNewCondMayCallNew(t *testing.T) {
	for _, l := range []interface {
		sync.Locker
		NewCond() *condition.Cond
	}{new(ownCond), new(ownCondOf)} {
		synctest.Test(t, func(t *testing.T) {
			c := l.NewCond()
			require.True(t, l == c.Locker())
			var wg sync.WaitGroup
			wg.Go(func() {
				l.Lock()
				c.Wait()
				l.Unlock()
			})
			synctest.Wait()
			l.Lock()
			c.Signal()
			l.Unlock()
			wg.Wait()
		})
	}
}

func TestNewOfNilPanics(t *testing.T) {
	require.Panics(t, func() { condition.New(nil) })
}

// Limits.

func TestAnEndedContextKeepsTheLock(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(assert.AnError)
		f.Lock()
		in := false
		go func() { f.Lock(); in = true; f.Unlock() }()
		synctest.Wait()
		for _, err := range []error{f.c.WaitContext(ctx), f.c.WaitWhile(ctx, func() bool { return true })} {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, assert.AnError)
		}
		require.False(t, in)
		f.Unlock()
		synctest.Wait()
		require.True(t, in)
	})
}

func TestANilContextIsAnError(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		f.Lock()
		require.ErrorIs(t, f.c.WaitContext(nil), locks.ErrNilContext)                            //nolint:staticcheck
		require.ErrorIs(t, f.c.WaitWhile(nil, func() bool { return true }), locks.ErrNilContext) //nolint:staticcheck
		require.NoError(t, f.c.SignalContext(nil))                                               //nolint:staticcheck
		require.NoError(t, f.c.BroadcastContext(nil))                                            //nolint:staticcheck
		f.Unlock()
	})
}

func TestACancelledWaitHoldsTheLockAgain(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := f.wait(f.until(ctx))
		f.Lock()
		cancel(assert.AnError)
		synctest.Wait()
		require.False(t, w.Back, "must not return without the lock")
		f.waiting(t, 0)
		f.queued(t, 1)
		time.Sleep(time.Hour)
		require.False(t, w.Back)
		f.Unlock()
		synctest.Wait()
		require.True(t, w.Back)
		require.ErrorIs(t, w.Err, context.Canceled)
		require.ErrorIs(t, w.Err, assert.AnError)
	})
}

func TestATimedOutWaitHoldsTheLockAgain(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		w := f.wait(f.in(time.Minute))
		f.Lock()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.False(t, w.Back, "must not return without the lock")
		f.waiting(t, 0)
		f.queued(t, 1)
		f.Unlock()
		synctest.Wait()
		require.True(t, w.Back)
		require.False(t, w.OK)
	})
}

func TestWaitIsDeaf(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		w := f.wait(f.plain)
		time.Sleep(10000 * time.Hour)
		require.False(t, w.Back)
		f.Lock()
		f.c.Signal()
		f.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})
}

func TestASignalSkipsAWaiterThatGaveUp(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b, c := f.wait(f.until(ctx)), f.wait(f.in(time.Second)), f.wait(f.plain)
		f.Lock()
		cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		// Both have given up, but have not returned yet.
		f.waiting(t, 1)
		f.c.Signal()
		f.waiting(t, 0)
		f.Unlock()
		synctest.Wait()
		require.ErrorIs(t, a.Err, context.Canceled)
		require.False(t, b.OK)
		require.True(t, c.OK)
	})
}

func TestASignalledWaiterReturnsNormallyAfterItsLimit(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b := f.wait(f.until(ctx)), f.wait(f.in(time.Second))
		f.Lock()
		f.c.Broadcast()
		cancel()
		time.Sleep(time.Hour)
		f.queued(t, 2)
		f.Unlock()
		synctest.Wait()
		require.NoError(t, a.Err)
		require.True(t, a.OK)
		require.True(t, b.OK)
	})
}

func TestASignalledWaitReturnsTheTimeLeft(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		var left time.Duration
		f.wait(func() (bool, error) { left = f.c.WaitFor(time.Hour); return true, nil })
		time.Sleep(20 * time.Minute)
		f.Lock()
		f.c.Signal()
		time.Sleep(10 * time.Minute)
		f.Unlock()
		synctest.Wait()
		require.Equal(t, 30*time.Minute, left, "when the lock is held again")
	})
}

func TestALateSignalledWaitHasNoTimeLeft(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		var left time.Duration
		f.wait(func() (bool, error) { left = f.c.WaitFor(time.Hour); return true, nil })
		f.Lock()
		f.c.Signal()
		time.Sleep(3 * time.Hour)
		f.Unlock()
		synctest.Wait()
		require.Equal(t, -2*time.Hour, left)
	})
}

func TestATimedOutWaitHasNoTimeLeft(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		f.Lock()
		require.Zero(t, f.c.WaitFor(time.Hour))
		f.Unlock()
		var left time.Duration = 1
		f.wait(func() (bool, error) { left = f.c.WaitFor(time.Hour); return true, nil })
		f.Lock()
		time.Sleep(3 * time.Hour)
		f.Unlock()
		synctest.Wait()
		require.Equal(t, -2*time.Hour, left)
	})
}

func TestPastDurationsDoNotBlockOrWrap(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		f.Lock()
		defer f.Unlock()
		began := time.Now()
		for _, d := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
			left := f.c.WaitFor(d)
			require.LessOrEqual(t, left, time.Duration(0))
			require.Greater(t, left, -time.Minute, "sane")
		}
		for _, at := range []time.Time{{}, began, began.Add(-1), began.Add(math.MinInt64)} {
			require.False(t, f.c.WaitUntil(at))
		}
		require.Zero(t, time.Since(began))
		f.waiting(t, 0)
	})
}

func TestTheGreatestDurationDoesNotExpire(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		var left time.Duration
		a := f.wait(func() (bool, error) { left = f.c.WaitFor(math.MaxInt64); return true, nil })
		b := f.wait(func() (bool, error) { return f.c.WaitUntil(time.Now().Add(math.MaxInt64)), nil })
		time.Sleep(1000 * time.Hour)
		require.False(t, a.Back || b.Back)
		f.Lock()
		f.c.Broadcast()
		f.Unlock()
		synctest.Wait()
		require.Equal(t, math.MaxInt64-1000*time.Hour, left)
		require.True(t, b.OK)
	})
}

// WaitWhile.

func TestWaitWhileReturnsAtOnceIfPossible(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		f.Lock()
		require.NoError(t, f.c.WaitWhile(t.Context(), func() bool { return false }))
		f.Unlock()
	})
}

func TestWaitWhileSleepsThroughSignalsForOthers(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		stock := 0
		w := f.wait(func() (bool, error) {
			err := f.c.WaitWhile(t.Context(), func() bool { return stock < 3 })
			return err == nil, err
		})
		for i := range 3 {
			require.False(t, w.Back, i)
			f.Lock()
			stock++
			f.c.Signal()
			f.Unlock()
			synctest.Wait()
		}
		require.True(t, w.OK)
	})
}

func TestACancelledWaitWhileHoldsTheLock(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, assert.AnError)
		defer cancel()
		w := f.wait(func() (bool, error) {
			err := f.c.WaitWhile(ctx, func() bool { return true })
			return err == nil, err
		})
		f.Lock()
		time.Sleep(time.Hour)
		require.False(t, w.Back)
		f.Unlock()
		synctest.Wait()
		require.ErrorIs(t, w.Err, context.DeadlineExceeded)
		require.ErrorIs(t, w.Err, assert.AnError)
	})
}

func TestWaitWhileSucceedsIfPredicateAndContextEnd(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		blocked := true
		w := f.wait(func() (bool, error) {
			err := f.c.WaitWhile(ctx, func() bool { return blocked })
			return err == nil, err
		})
		f.Lock()
		cancel()
		synctest.Wait()
		blocked = false // without a signal
		f.Unlock()
		synctest.Wait()
		require.NoError(t, w.Err)
		require.True(t, w.OK)
	})
}

func TestANilPredicateFailsAndKeepsTheLock(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		f.Lock()
		require.ErrorIs(t, f.c.WaitWhile(t.Context(), nil), locks.ErrNilFunc)
		f.waiting(t, 0)
		f.Unlock()
	})
}

func TestAPredicateThatPanicsLeavesTheLockHeld(t *testing.T) {
	every(t, func(t *testing.T, f *fixture) {
		f.Lock()
		require.PanicsWithValue(t, "predicate", func() {
			_ = f.c.WaitWhile(t.Context(), func() bool { panic("predicate") })
		})
		f.Unlock()
	})
}

// Misuse.

// plainUses are the uses of c by the calling goroutine that need the lock.
func plainUses(c *condition.Cond) map[string]func() {
	return map[string]func(){
		"Wait":            c.Wait,
		"WaitFor":         func() { c.WaitFor(time.Hour) },
		"WaitFor 0":       func() { c.WaitFor(0) },
		"WaitUntil":       func() { c.WaitUntil(time.Now().Add(time.Hour)) },
		"Signal":          c.Signal,
		"Broadcast":       c.Broadcast,
		"HasWaiters":      func() { c.HasWaiters() },
		"WaitQueueLength": func() { c.WaitQueueLength() },
		"Waiters":         func() { c.Waiters() },
	}
}

func contextUses(c *condition.Cond, ctx context.Context) map[string]error {
	return map[string]error{
		"WaitContext":      c.WaitContext(ctx),
		"WaitWhile":        c.WaitWhile(ctx, func() bool { return true }),
		"SignalContext":    c.SignalContext(ctx),
		"BroadcastContext": c.BroadcastContext(ctx),
	}
}

func TestNoUseOfAConditionWithoutItsLock(t *testing.T) {
	test := func(t *testing.T, f *fixture) {
		a := f.wait(f.plain)
		for name, use := range plainUses(f.c) {
			t.Log(name)
			locktest.PanicsWith(t, locks.ErrNotHeld, use)
		}
		for name, err := range contextUses(f.c, t.Context()) {
			require.ErrorIs(t, err, locks.ErrNotHeld, name)
		}
		require.False(t, a.Back)
		f.Lock()
		f.waiting(t, 1)
		f.c.Signal()
		f.Unlock()
	}
	ours(t, test)
	apart(t, test)
}

func TestAConditionRefusesOwnersWithoutItsLock(t *testing.T) {
	ours(t, func(t *testing.T, f *fixture) {
		if !f.kind.Owned {
			return // such a lock cannot tell
		}
		f.wait(f.plain)
		f.Lock()
		o := locks.WithOwner(t.Context(), locks.NewOwner())
		w := locktest.Start(func() (bool, error) {
			for _, use := range plainUses(f.c) {
				locktest.PanicsWith(t, locks.ErrNotHeld, use)
			}
			for name, err := range contextUses(f.c, o) {
				assert.ErrorIs(t, err, locks.ErrNotHeld, name)
			}
			return true, nil
		}, nil)
		require.True(t, w.Back)
		f.waiting(t, 1)
		f.c.Signal()
		f.Unlock()
	})
}

func TestHammeredUsesWithoutTheLockChangeNothing(t *testing.T) {
	for _, k := range append(locktest.Reentrant(), locktest.ReadWrite()...) {
		t.Run(k.Name, func(t *testing.T) {
			l := k.New()
			c := l.NewCond()
			var wg sync.WaitGroup
			wg.Go(func() { l.Lock(); defer l.Unlock(); c.Wait() })
			locktest.Await(t, func() bool {
				l.Lock()
				defer l.Unlock()
				return c.HasWaiters()
			}, "the waiter")
			var hammers sync.WaitGroup
			for range 4 {
				hammers.Go(func() {
					for range 100 {
						for _, use := range plainUses(c) {
							locktest.PanicsWith(t, locks.ErrNotHeld, use)
						}
						for _, err := range contextUses(c, context.Background()) {
							assert.ErrorIs(t, err, locks.ErrNotHeld)
						}
					}
				})
			}
			for range 200 {
				l.Lock()
				assert.Equal(t, 1, c.WaitQueueLength())
				l.Unlock()
			}
			hammers.Wait()
			l.Lock()
			c.Signal()
			require.Zero(t, c.WaitQueueLength())
			l.Unlock()
			wg.Wait()
			locktest.Works(t, l)
		})
	}
}

// Holds and owners.

func reentrantOnes(t *testing.T, test func(t *testing.T, m *reentrant.Mutex, c *condition.Cond)) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := reentrant.New(p)
				test(t, m, m.NewCond())
				synctest.Wait()
				locktest.Works(t, m)
			})
		})
	}
}

func TestAWaitReleasesAllHoldsAndRestoresThem(t *testing.T) {
	reentrantOnes(t, func(t *testing.T, m *reentrant.Mutex, c *condition.Cond) {
		ctx, cancel := context.WithCancel(t.Context())
		ends := map[string]struct{ wait, end func() }{
			"signal": {c.Wait, c.Signal},
			"signal within a limit": {
				func() { assert.Positive(t, c.WaitFor(time.Hour)) }, c.Broadcast,
			},
			"signal within a context": {func() { assert.NoError(t, c.WaitContext(t.Context())) }, c.Signal},
			"time-out": {
				func() { assert.False(t, c.WaitUntil(time.Now().Add(time.Second))) },
				func() { time.Sleep(time.Minute) },
			},
			"no time at all": {func() { c.WaitFor(0) }, func() {}},
			"cancellation":   {func() { assert.Error(t, c.WaitContext(ctx)) }, cancel},
		}
		for name, e := range ends {
			const holds = 5
			w := locktest.Start(func() (bool, error) {
				for range holds {
					m.Lock()
				}
				e.wait()
				assert.True(t, m.IsHeld(), name)
				assert.Equal(t, holds, m.HoldCount(), name)
				for range holds {
					m.Unlock()
				}
				return !m.IsLocked(), nil
			}, nil)
			require.True(t, m.TryLock(), "%s: all holds are given up", name)
			require.Equal(t, 1, m.HoldCount(), "the waiter's count is not the next one's")
			m.Lock()
			e.end()
			synctest.Wait()
			m.Unlock()
			m.Unlock()
			synctest.Wait()
			require.True(t, w.OK, name)
		}
	})
}

func TestExplicitOwnersWaitAndSignal(t *testing.T) {
	reentrantOnes(t, func(t *testing.T, m *reentrant.Mutex, c *condition.Cond) {
		o, p := locks.NewOwner(), locks.NewOwner()
		waits, signals := locks.WithOwner(t.Context(), o), locks.WithOwner(t.Context(), p)
		for _, signal := range []func(context.Context) error{c.SignalContext, c.BroadcastContext} {
			w := locktest.Start(func() (bool, error) {
				assert.NoError(t, m.LockContext(waits))
				assert.NoError(t, m.LockContext(waits))
				err := c.WaitContext(waits)
				assert.Equal(t, o, m.Owner())
				assert.NoError(t, m.UnlockContext(waits))
				assert.NoError(t, m.UnlockContext(waits))
				return err == nil, err
			}, nil)
			require.ErrorIs(t, signal(signals), locks.ErrNotHeld)
			done, cancel := context.WithCancel(signals)
			require.NoError(t, m.LockContext(done))
			cancel()
			require.ErrorIs(t, signal(waits), locks.ErrNotHeld, "the waiter has given the lock up")
			require.ErrorIs(t, signal(t.Context()), locks.ErrNotHeld)
			require.NoError(t, signal(done), "ignores that its context has ended")
			require.True(t, m.IsQueued(o))
			require.NoError(t, m.UnlockContext(done))
			synctest.Wait()
			require.True(t, w.OK)
		}
	})
}

func TestWaitWhileActsForItsContextsOwner(t *testing.T) {
	reentrantOnes(t, func(t *testing.T, m *reentrant.Mutex, c *condition.Cond) {
		o := locks.NewOwner()
		ctx := locks.WithOwner(t.Context(), o)
		blocked := true
		w := locktest.Start(func() (bool, error) {
			assert.NoError(t, m.LockContext(ctx))
			err := c.WaitWhile(ctx, func() bool { assert.Equal(t, o, m.Owner()); return blocked })
			assert.NoError(t, m.UnlockContext(ctx))
			return err == nil, err
		}, nil)
		m.Lock()
		require.Equal(t, []locks.Owner{o}, c.Waiters())
		blocked = false
		c.Signal()
		m.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})
}

func TestAnyGoroutineSignalsUnderAHeldOwnerlessLock(t *testing.T) {
	ours(t, func(t *testing.T, f *fixture) {
		if f.kind.Owned {
			return
		}
		w := f.wait(f.plain)
		f.Lock()
		done := make(chan struct{})
		go func() { f.c.Signal(); close(done) }()
		<-done
		f.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})
}

func TestAnExplicitOwnerSeesAConditionsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m reentrant.Mutex
		c := m.NewCond()
		mine := locks.WithOwner(context.Background(), locks.NewOwner())
		_, err := c.WaitersContext(mine)
		require.ErrorIs(t, err, locks.ErrNotHeld)
		var wg sync.WaitGroup
		wg.Go(func() {
			m.Lock()
			defer m.Unlock()
			c.Wait()
		})
		synctest.Wait()
		require.NoError(t, m.LockContext(mine))
		who, err := c.WaitersContext(mine)
		require.NoError(t, err)
		require.Len(t, who, 1)
		_, err = c.WaitersContext(context.Background())
		require.ErrorIs(t, err, locks.ErrNotHeld, "the goroutine does not hold it")
		require.NoError(t, c.SignalContext(mine))
		require.NoError(t, m.UnlockContext(mine))
		wg.Wait()
	})
}

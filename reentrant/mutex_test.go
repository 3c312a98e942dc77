package reentrant_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/reentrant"
)

// both runs f in a bubble, with a lock of each policy, which must work at the end.
func both(t *testing.T, f func(t *testing.T, m *reentrant.Mutex)) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := reentrant.New(p)
				f(t, m)
				synctest.Wait()
				locktest.Works(t, m)
			})
		})
	}
}

// acquisitions are all ways of the calling goroutine to take m.
func acquisitions(m *reentrant.Mutex) map[string]func() (bool, error) {
	ctx := context.Background()
	return map[string]func() (bool, error){
		"Lock":                func() (bool, error) { m.Lock(); return true, nil },
		"TryLock":             func() (bool, error) { return m.TryLock(), nil },
		"TryLockFor":          func() (bool, error) { return m.TryLockFor(time.Hour), nil },
		"TryLockFor 0":        func() (bool, error) { return m.TryLockFor(0), nil },
		"TryLockFor negative": func() (bool, error) { return m.TryLockFor(math.MinInt64), nil },
		"LockContext":         func() (bool, error) { err := m.LockContext(ctx); return err == nil, err },
		"TryLockContext":      func() (bool, error) { return m.TryLockContext(ctx) },
	}
}

func TestTheZeroMutexIsNonFair(t *testing.T) {
	var m reentrant.Mutex
	require.False(t, m.IsFair())
	require.False(t, reentrant.New(locks.NonFair).IsFair())
	require.True(t, reentrant.New(locks.FIFO).IsFair())
}

func TestTheOwnerReentersAndUnlocksAsOften(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		want := 0
		for name, acquire := range acquisitions(m) {
			ok, err := acquire()
			require.True(t, ok, name)
			require.NoError(t, err, name)
			want++
			require.Equal(t, want, m.HoldCount(), name)
		}
		for ; want > 0; want-- {
			require.Equal(t, want, m.HoldCount())
			require.True(t, m.IsHeld())
			m.Unlock()
		}
		require.Zero(t, m.HoldCount())
		require.False(t, m.IsHeld())
		require.False(t, m.IsLocked())
	})
}

func TestOthersGetInOnlyAfterTheLastUnlock(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		for range 5 {
			m.Lock()
		}
		w := locktest.Start(locktest.Locking(m), m.Unlock)
		for range 4 {
			m.Unlock()
			synctest.Wait()
			require.False(t, w.Back)
		}
		m.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})
}

func TestReentryIgnoresTheQueue(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		m.Lock()
		w := locktest.Start(locktest.Locking(m), m.Unlock)
		for name, acquire := range acquisitions(m) {
			ok, err := acquire() // would hang, or fail, if it queued behind w
			require.True(t, ok, name)
			require.NoError(t, err, name)
			require.Equal(t, 2, m.HoldCount(), name)
			m.Unlock()
		}
		require.Equal(t, 1, m.QueueLength())
		require.False(t, w.Back)
		m.Unlock()
	})
}

func TestOnlyTheOwnerIsHeldAndCounts(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		require.Zero(t, m.Owner())
		m.Lock()
		m.Lock()
		require.Equal(t, locktest.Me(), m.Owner())
		locktest.Start(func() (bool, error) {
			assert.False(t, m.IsHeld())
			assert.Zero(t, m.HoldCount())
			assert.True(t, m.IsLocked())
			locktest.PanicsWith(t, locks.ErrNotHeld, m.AssertHeld)
			return false, nil
		}, nil)
		m.AssertHeld()
		m.Unlock()
		m.AssertHeld()
		m.Unlock()
		require.Zero(t, m.Owner())
		locktest.PanicsWith(t, locks.ErrNotHeld, m.AssertHeld)
	})
}

func TestUnlockByAnotherGoroutineChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		m.Lock()
		m.Lock()
		waiter := locktest.Start(locktest.Locking(m), m.Unlock)
		me := locktest.Me()
		w := locktest.Start(func() (bool, error) {
			locktest.PanicsWith(t, locks.ErrNotHeld, m.Unlock)
			assert.ErrorIs(t, m.UnlockContext(context.Background()), locks.ErrNotHeld)
			return true, nil
		}, nil)
		require.True(t, w.Back)
		require.Equal(t, me, m.Owner())
		require.Equal(t, 2, m.HoldCount())
		require.Equal(t, 1, m.QueueLength())
		m.Unlock()
		require.False(t, waiter.Back)
		m.Unlock()
	})
}

func TestUnlockByAnotherIsRefusedWhenHammered(t *testing.T) {
	m := new(reentrant.Mutex)
	m.Lock()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				locktest.PanicsWith(t, locks.ErrNotHeld, m.Unlock)
				runtime.Gosched()
			}
		})
	}
	for range 500 {
		m.Lock()
		m.Unlock() //nolint:staticcheck // empty on purpose
	}
	wg.Wait()
	require.Equal(t, 1, m.HoldCount())
	m.Unlock()
	locktest.Works(t, m)
}

func TestUnlockOncePerHoldAndNoMore(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		m.Lock()
		m.Lock()
		m.Unlock()
		m.Unlock()
		locktest.PanicsWith(t, locks.ErrNotHeld, m.Unlock)
	})
}

func TestAPanicDeepInsideGivesAllHoldsBack(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		var dive func(depth int)
		dive = func(depth int) {
			m.Lock()
			defer m.Unlock()
			if depth == 0 {
				panic("deep")
			}
			dive(depth - 1)
		}
		require.PanicsWithValue(t, "deep", func() { dive(10) })
		require.False(t, m.IsLocked())
	})
}

func TestOneHoldTooManyChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		m.Lock()
		reentrant.SetHolds(m, reentrant.MaxHolds-1)
		m.Lock()
		require.Equal(t, reentrant.MaxHolds, m.HoldCount())
		locktest.PanicsWith(t, locks.ErrTooManyHolds, m.Lock)
		locktest.PanicsWith(t, locks.ErrTooManyHolds, func() { m.TryLock() })
		locktest.PanicsWith(t, locks.ErrTooManyHolds, func() { m.TryLockFor(0) })
		locktest.PanicsWith(t, locks.ErrTooManyHolds, func() { m.TryLockFor(time.Hour) })
		require.ErrorIs(t, m.LockContext(t.Context()), locks.ErrTooManyHolds)
		ok, err := m.TryLockContext(t.Context())
		require.False(t, ok)
		require.ErrorIs(t, err, locks.ErrTooManyHolds)
		require.Equal(t, reentrant.MaxHolds, m.HoldCount())

		m.Unlock()
		require.Equal(t, reentrant.MaxHolds-1, m.HoldCount())
		require.True(t, m.TryLock(), "there is room for one again")
		require.Equal(t, reentrant.MaxHolds, m.HoldCount())
		reentrant.SetHolds(m, 1)
		m.Unlock()
	})
}

func TestConditionWaitRestoresTheGreatestNumberOfHolds(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		c := m.NewCond()
		m.Lock()
		reentrant.SetHolds(m, reentrant.MaxHolds)
		locktest.Start(locktest.Locking(m), func() {
			assert.Equal(t, 1, m.HoldCount())
			m.Unlock()
		})
		c.WaitFor(time.Second)
		require.Equal(t, reentrant.MaxHolds, m.HoldCount())
		reentrant.SetHolds(m, 1)
		m.Unlock()
	})
}

func TestADoneContextIsReportedOnReentryToo(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		ctx, cancel := context.WithCancelCause(t.Context())
		require.NoError(t, m.LockContext(ctx))
		require.NoError(t, m.LockContext(ctx))
		cancel(assert.AnError)
		err := m.LockContext(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, assert.AnError)
		ok, err := m.TryLockContext(ctx)
		require.False(t, ok)
		require.ErrorIs(t, err, assert.AnError)
		require.ErrorIs(t, m.LockContext(nil), locks.ErrNilContext) //nolint:staticcheck // the point
		require.Equal(t, 2, m.HoldCount())
		require.NoError(t, m.UnlockContext(ctx), "an unlock ignores that its context has ended")
		require.NoError(t, m.UnlockContext(nil)) //nolint:staticcheck // the point
	})
}

func TestAnExplicitOwnerHoldsInsteadOfTheGoroutine(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		o := locks.NewOwner()
		ctx := locks.WithOwner(t.Context(), o)
		require.NoError(t, m.LockContext(ctx))
		require.Equal(t, o, m.Owner())
		require.False(t, m.IsHeld())
		require.False(t, m.TryLock(), "the goroutine is somebody else")
		require.False(t, m.TryLockFor(time.Second))
		ok, err := m.TryLockContext(locks.WithOwner(t.Context(), locks.NewOwner()))
		require.False(t, ok)
		require.NoError(t, err)
		locktest.PanicsWith(t, locks.ErrNotHeld, m.Unlock)
		require.ErrorIs(t, m.UnlockContext(t.Context()), locks.ErrNotHeld)
		require.ErrorIs(t, m.UnlockContext(nil), locks.ErrNotHeld) //nolint:staticcheck // the point
		require.ErrorContains(t, m.UnlockContext(locks.WithOwner(ctx, 0)), locktest.Me().String())
		require.Contains(t, m.String(), "locked by "+o.String())
		require.NoError(t, m.UnlockContext(ctx))
		require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld)
	})
}

func TestGoroutinesThatShareAnOwnerShareItsHolds(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		ctx := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, m.LockContext(ctx))
		stranger := locktest.Start(locktest.Locking(m), m.Unlock)
		w := locktest.Start(func() (bool, error) {
			assert.NoError(t, m.LockContext(ctx), "does not wait for itself, nor for the stranger")
			ok, err := m.TryLockContext(ctx)
			assert.NoError(t, m.UnlockContext(ctx))
			return ok, err
		}, nil)
		require.True(t, w.OK)
		require.NoError(t, m.UnlockContext(ctx))
		require.False(t, stranger.Back)
		done, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, m.UnlockContext(done), "it was left by the other goroutine")
		synctest.Wait()
		require.True(t, stranger.OK)
	})
}

func TestWaitingExplicitOwnerIsSeenAndGivesUp(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		m.Lock()
		o := locks.NewOwner()
		ctx, cancel := context.WithCancel(locks.WithOwner(t.Context(), o))
		w := locktest.Start(locktest.LockingContext(m, ctx), nil)
		require.True(t, m.IsQueued(o))
		require.False(t, m.IsQueued(w.ID), "the owner waits, not the goroutine")
		cancel()
		synctest.Wait()
		require.ErrorIs(t, w.Err, context.Canceled)
		require.False(t, m.IsQueued(o))
		m.Unlock()
	})
}

func TestConditionQueriesAreForTheHolder(t *testing.T) {
	both(t, func(t *testing.T, m *reentrant.Mutex) {
		var other reentrant.Mutex
		c, foreign := m.NewCond(), other.NewCond()
		over := condition.New(new(sync.Mutex))
		queries := func(c *condition.Cond) []func() {
			return []func(){func() { m.HasWaiters(c) }, func() { m.WaitQueueLength(c) }}
		}
		for range 2 { // without the lock, and with it
			for _, bad := range []*condition.Cond{nil, foreign, over} {
				for _, q := range queries(bad) {
					locktest.PanicsWith(t, locks.ErrForeign, q)
				}
			}
			if !m.IsHeld() {
				for _, q := range queries(c) {
					locktest.PanicsWith(t, locks.ErrNotHeld, q)
				}
				m.Lock()
			}
		}
		require.False(t, m.HasWaiters(c))
		require.Zero(t, m.WaitQueueLength(c))
		m.Unlock()
		locktest.Start(locktest.Locking(m), func() { c.Wait(); m.Unlock() })
		m.Lock()
		require.True(t, m.HasWaiters(c))
		require.Equal(t, 1, m.WaitQueueLength(c))
		c.Signal()
		require.False(t, m.HasWaiters(c))
		m.Unlock()
	})
}

func TestReentryAllocatesNothing(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		m := reentrant.New(p)
		m.Lock()
		for name, acquire := range acquisitions(m) {
			require.Zero(t, testing.AllocsPerRun(100, func() {
				_, _ = acquire()
				m.Unlock()
			}), name)
		}
		ctx := context.Background()
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_ = m.LockContext(ctx)
			_ = m.UnlockContext(ctx)
		}))
		require.Zero(t, testing.AllocsPerRun(100, func() { m.AssertHeld(); m.HoldCount(); m.Owner() }))
		m.Unlock()
	}
}

func TestGoroutinesOfOneOwnerLoseNoHold(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			m := reentrant.New(p)
			plain := 0 // written by holders with the identity of a goroutine
			var wg sync.WaitGroup
			for range 2 {
				ctx := locks.WithOwner(context.Background(), locks.NewOwner())
				for range 3 {
					wg.Go(func() {
						for i := range 200 {
							if !assert.NoError(t, m.LockContext(ctx)) {
								return
							}
							if i%2 == 0 && assert.NoError(t, m.LockContext(ctx)) {
								runtime.Gosched()
								assert.NoError(t, m.UnlockContext(ctx))
							}
							assert.Equal(t, locks.CurrentOwner(ctx), m.Owner())
							assert.NoError(t, m.UnlockContext(ctx))
						}
					})
				}
				wg.Go(func() {
					for range 200 {
						m.Lock()
						plain++
						m.Unlock()
					}
				})
			}
			wg.Wait()
			require.Equal(t, 400, plain)
			locktest.Works(t, m)
		})
	}
}

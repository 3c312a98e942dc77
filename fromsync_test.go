package locks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksOfPackageSyncConform(t *testing.T) {
	for name, newLock := range map[string]func() locks.SyncLocker{
		"Mutex":   func() locks.SyncLocker { return new(sync.Mutex) },
		"RWMutex": func() locks.SyncLocker { return new(sync.RWMutex) },
	} {
		t.Run(name, func(t *testing.T) {
			lockstest.TestTryLocker(t, lockstest.Config{
				New: func(testing.TB) locks.TryLocker { return locks.FromSync(newLock()) },
			})
		})
	}
}

func TestAWaiterForALockOfPackageSyncGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		l := locks.FromSync(&mu)
		mu.Lock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(time.Minute, mu.Unlock)
		began := time.Now()
		require.NoError(t, l.LockContext(ctx))
		require.InDelta(t, time.Minute, time.Since(began), float64(time.Millisecond))
		require.NoError(t, l.UnlockContext(ctx))
		require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrNotHeld)
	})
}

func TestADirectLockIsNotUnlockedByContext(t *testing.T) {
	var mu sync.Mutex
	l := locks.FromSync(&mu)
	mu.Lock()
	require.ErrorIs(t, l.UnlockContext(t.Context()), locks.ErrNotHeld)
	ok, err := l.TryLockContext(t.Context())
	require.False(t, ok)
	require.NoError(t, err)
	mu.Unlock()
}

func TestAMultiOrdersLocksOfPackageSync(t *testing.T) {
	var a, b sync.Mutex
	ctx := t.Context()
	twice := locks.Multi(locks.FromSync(&a), locks.FromSync(&a))
	require.NoError(t, twice.LockContext(ctx), "it is acquired once")
	require.NoError(t, twice.UnlockContext(ctx))

	var wg sync.WaitGroup
	for _, l := range []locks.TryLocker{
		locks.Multi(locks.FromSync(&a), locks.FromSync(&b)), locks.Multi(locks.FromSync(&b), locks.FromSync(&a)),
	} {
		wg.Go(func() {
			for range 1000 {
				if l.LockContext(context.Background()) == nil {
					_ = l.UnlockContext(context.Background())
				}
			}
		})
	}
	wg.Wait()
}

// valueLock is a lock that is a value without an address.
type valueLock struct{ taken chan struct{} }

func (l valueLock) Lock()   { l.taken <- struct{}{} }
func (l valueLock) Unlock() { <-l.taken }
func (l valueLock) TryLock() bool {
	select {
	case l.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

func TestAdaptersOfOneValueAreOneLock(t *testing.T) {
	l := valueLock{make(chan struct{}, 1)}
	twice := locks.Multi(locks.FromSync(l), locks.FromSync(l))
	ok, err := twice.TryLockContext(t.Context())
	require.True(t, ok, "it is acquired once")
	require.NoError(t, err)
	require.NoError(t, twice.UnlockContext(t.Context()))
	other := locks.Multi(locks.FromSync(l), locks.FromSync(valueLock{make(chan struct{}, 1)}))
	require.NoError(t, other.LockContext(t.Context()))
	require.Len(t, other.(interface{ Unwrap() []locks.TryLocker }).Unwrap(), 2)
	require.Equal(t, "locks.FromSync(locks_test.valueLock)", fmt.Sprint(locks.FromSync(l)))
	var mu sync.Mutex
	require.Equal(t, fmt.Sprintf("locks.FromSync(*sync.Mutex(%p))", &mu), fmt.Sprint(locks.FromSync(&mu)))
}

func TestReadersShareAGuardedValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := locks.NewRWGuarded(new(fair.RWMutex), map[string]int{"a": 1})
		inside, end := 0, make(chan struct{})
		for range 2 {
			go g.Read(t.Context(), func(m *map[string]int) error {
				inside += (*m)["a"]
				<-end
				return nil
			})
			synctest.Wait()
		}
		require.Equal(t, 2, inside)
		ran, err := g.TryWith(t.Context(), func(*map[string]int) error { return nil })
		require.False(t, ran, "readers keep writers out")
		require.NoError(t, err)
		close(end)
		require.NoError(t, g.With(t.Context(), func(m *map[string]int) error {
			(*m)["a"]++
			ran, err := g.TryRead(t.Context(), func(*map[string]int) error { return nil })
			require.False(t, ran, "a writer keeps readers out")
			return err
		}))
		require.NoError(t, g.Read(t.Context(), func(m *map[string]int) error {
			require.Equal(t, 2, (*m)["a"])
			return nil
		}))
		require.ErrorIs(t, g.Read(t.Context(), nil), locks.ErrNilFunc)
		require.Error(t, new(locks.RWGuarded[int]).Read(t.Context(), func(*int) error { return nil }))
	})
}

func TestAGuardedValueWithoutALockSaysSo(t *testing.T) {
	var none *fair.RWMutex
	for _, l := range []locks.ReadWriteLocker{nil, none} {
		g := locks.NewRWGuarded(l, 1)
		for op, call := range map[string]func(func(*int) error) error{
			"With": func(f func(*int) error) error { return g.With(ctx, f) },
			"Read": func(f func(*int) error) error { return g.Read(ctx, f) },
			"TryWith": func(f func(*int) error) error {
				ran, err := g.TryWith(ctx, f)
				require.False(t, ran)
				return err
			},
			"TryRead": func(f func(*int) error) error {
				ran, err := g.TryRead(ctx, f)
				require.False(t, ran)
				return err
			},
		} {
			require.EqualError(t, call(func(*int) error { return nil }), "locks: RWGuarded."+op+": nil lock")
		}
	}
	var mutex *fair.Mutex
	for _, l := range []locks.TryLocker{nil, mutex} {
		err := locks.NewGuarded(l, 1).With(ctx, func(*int) error { return nil })
		require.EqualError(t, err, "locks: Guarded.With: nil lock")
	}
}

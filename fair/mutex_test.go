package fair_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/locktest"
)

// each runs f in a bubble, with each lock of the package, which must work at the end.
func each(t *testing.T, f func(t *testing.T, l locktest.Lock)) {
	for _, k := range locktest.Fair() {
		t.Run(k.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := k.New()
				f(t, l)
				synctest.Wait()
				locktest.Works(t, l)
			})
		})
	}
}

func TestAnotherGoroutineMayUnlock(t *testing.T) {
	each(t, func(t *testing.T, l locktest.Lock) {
		locktest.Start(locktest.Locking(l), nil)
		require.True(t, l.IsLocked())
		l.Unlock()
		locktest.Start(locktest.Locking(l), nil)
		require.NoError(t, l.UnlockContext(context.Background()))
	})
}

func TestAnotherOwnerMayUnlock(t *testing.T) {
	each(t, func(t *testing.T, l locktest.Lock) {
		require.NoError(t, l.LockContext(locks.WithOwner(t.Context(), locks.NewOwner())))
		require.NoError(t, l.UnlockContext(locks.WithOwner(t.Context(), locks.NewOwner())))
	})
}

func TestTheHolderDoesNotGetInAgain(t *testing.T) {
	each(t, func(t *testing.T, l locktest.Lock) {
		l.Lock()
		require.False(t, l.TryLock())
		ok, err := l.TryLockContext(t.Context())
		require.False(t, ok)
		require.NoError(t, err)
		require.False(t, l.TryLockFor(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		l.Unlock()
	})
}

func TestASecondLockWaitsForAnUnlock(t *testing.T) {
	each(t, func(t *testing.T, l locktest.Lock) {
		l.Lock()
		time.AfterFunc(time.Hour, l.Unlock)
		began := time.Now()
		l.Lock()
		require.Equal(t, time.Hour, time.Since(began))
		l.Unlock()
	})
}

func TestFairReleaseMakesTheFirstWaiterTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m fair.Mutex
		m.Lock()
		a := locktest.Start(locktest.Locking(&m), nil)
		b := locktest.Start(locktest.Locking(&m), nil)
		m.Unlock()
		require.True(t, m.IsLocked(), "handed over, never free")
		require.Equal(t, []locks.Owner{b.ID}, m.Queued())
		require.False(t, m.TryLock())
		m.Unlock() // for a
		require.Empty(t, m.Queued())
		m.Unlock() // for b
		synctest.Wait()
		require.True(t, a.OK && b.OK)
		locktest.Works(t, &m)
	})
}

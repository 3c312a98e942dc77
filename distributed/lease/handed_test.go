package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

func TestAFixedHoldIsNotHandedARenewedOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		renewed, fixed := c.Mutex("it"), c.Mutex("it", lease.WithFixedTTL(10*time.Second))
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, renewed, a)
		got := make(chan error, 1)
		go func() { got <- fixed.LockContext(b) }()
		synctest.Wait()
		require.NoError(t, renewed.UnlockContext(a))
		require.NoError(t, <-got)
		h, err := fixed.Hold(b)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.ErrorIs(t, h.Err(), locks.ErrLost, "it is not renewed")
		require.Empty(t, s.holder("it"))
		require.ErrorIs(t, fixed.UnlockContext(b), locks.ErrLost)
	})
}

// The unlock sees a waiter, hands the lock off, and finds the waiter gone.
func TestAnUnlockThatMeetsACancellationLeavesNoLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		for range 3000 {
			hold(t, l, a)
			ctx, cancel := context.WithCancel(b)
			var wg sync.WaitGroup
			wg.Go(func() {
				if l.LockContext(ctx) == nil {
					require.NoError(t, l.UnlockContext(b))
				}
			})
			synctest.Wait()
			wg.Go(cancel)
			wg.Go(func() { require.NoError(t, l.UnlockContext(a)) })
			wg.Wait()
			synctest.Wait()
			require.Empty(t, s.holder("it"), "nobody has it")
		}
	})
}

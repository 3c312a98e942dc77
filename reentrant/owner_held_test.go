package reentrant_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/reentrant"
)

func TestAHelperAsksForTheHoldsOfAnExplicitOwner(t *testing.T) {
	var m reentrant.Mutex
	mine := locks.WithOwner(context.Background(), locks.NewOwner())
	other := locks.WithOwner(context.Background(), locks.NewOwner())
	require.False(t, m.IsHeldContext(mine))
	require.NoError(t, m.LockContext(mine))
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, m.LockContext(mine)) })
	wg.Wait()
	require.True(t, m.IsHeldContext(mine))
	require.Equal(t, 2, m.HoldCountContext(mine), "another goroutine's hold counts")
	for _, stranger := range []context.Context{other, context.Background(), nil} {
		require.False(t, m.IsHeldContext(stranger))
		require.Zero(t, m.HoldCountContext(stranger))
	}
	require.NoError(t, m.UnlockContext(mine))
	require.NoError(t, m.UnlockContext(mine))
	require.Zero(t, m.HoldCountContext(mine))
}

func TestContextFormsCountTheHoldsOfGoroutineToo(t *testing.T) {
	var m reentrant.Mutex
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	m.Lock()
	m.Lock()
	require.True(t, m.IsHeldContext(ended))
	require.Equal(t, m.HoldCount(), m.HoldCountContext(ended))
	m.Unlock()
	m.Unlock()
	require.False(t, m.IsHeldContext(ended))
}

// The release makes a waiter the holder. Another goroutine of its owner asks before it has run.
func TestAnOwnersGrantedHoldCountsAtOnce(t *testing.T) {
	for range 200 {
		m := reentrant.New(locks.FIFO)
		mine := locks.WithOwner(context.Background(), locks.NewOwner())
		m.Lock()
		var wg sync.WaitGroup
		wg.Go(func() { require.NoError(t, m.LockContext(mine)) })
		for !m.HasQueued() {
			runtime.Gosched()
		}
		m.Unlock()
		require.Equal(t, 1, m.HoldCountContext(mine))
		wg.Wait()
		require.NoError(t, m.UnlockContext(mine))
	}
}

package semaphore_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/semaphore"
)

// The tests of this file have the situations of the tests of golang.org/x/sync/semaphore, whose
// names stand above them. They expect the documented behaviour of x/sync.

// TestWeighted
func TestHammeredWeightsAreNeverTooMany(t *testing.T) {
	n := int64(max(runtime.GOMAXPROCS(0), 4))
	s := semaphore.NewWeighted(n)
	var held atomic.Int64
	var wg sync.WaitGroup
	for weight := range n {
		wg.Go(func() {
			for range 1000 {
				if s.Acquire(t.Context(), weight) != nil {
					t.Error("not acquired")
				}
				if held.Add(weight) > n {
					t.Error("too many")
				}
				runtime.Gosched()
				held.Add(-weight)
				s.Release(weight)
			}
		})
	}
	wg.Wait()
	require.Equal(t, n, s.Available())
}

// TestWeightedPanic
func TestReleaseOfUnheldPermitPanics(t *testing.T) {
	s := semaphore.NewWeighted(1)
	require.PanicsWithValue(t, "semaphore: released more than held: 1 of 0", func() { s.Release(1) })
	require.EqualValues(t, 1, s.Available(), "nothing is changed")
}

// TestWeightedNegativeSizePanic
func TestNegativeSizePanics(t *testing.T) {
	require.PanicsWithValue(t, "semaphore: size < 0", func() { semaphore.NewWeighted(-1) })
	require.PanicsWithValue(t, "semaphore: size < 0", func() { semaphore.NewWeighted(1).Resize(-1) })
}

// TestWeightedZeroSize
func TestWeightZeroIsFreeAtSizeZero(t *testing.T) {
	require.True(t, semaphore.NewWeighted(0).TryAcquire(0))
	require.True(t, new(semaphore.Weighted).TryAcquire(0))
}

// TestWeightedNegativeWeightPanic
func TestNegativeWeightPanics(t *testing.T) {
	s := semaphore.NewWeighted(1)
	for _, f := range []func(){
		func() { _ = s.Acquire(t.Context(), -1) },
		func() { s.TryAcquire(-1) },
		func() { s.TryAcquireFor(-1, 1) },
		func() { s.Release(-1) },
	} {
		require.PanicsWithValue(t, "semaphore: n < 0", f)
	}
}

// TestWeightedTryAcquire
func TestTrySucceedsWhileEnoughIsFree(t *testing.T) {
	s := semaphore.NewWeighted(2)
	require.NoError(t, s.Acquire(t.Context(), 1))
	require.True(t, s.TryAcquire(1))
	require.False(t, s.TryAcquire(1))
	s.Release(2)
	require.True(t, s.TryAcquire(1))
	require.NoError(t, s.Acquire(t.Context(), 1))
	require.False(t, s.TryAcquire(1))
}

// TestWeightedAcquire
func TestAcquireFailsWhenItsDeadlinePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(2)
		acquire := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			return s.Acquire(ctx, 1)
		}
		require.NoError(t, acquire())
		require.NoError(t, acquire())
		require.Equal(t, context.DeadlineExceeded, acquire(), "not wrapped")
		s.Release(2)
		require.NoError(t, acquire())
	})
}

// TestWeightedDoesntBlockIfTooBig
func TestTooLargeAcquireBlocksNoOther(t *testing.T) {
	s := semaphore.NewWeighted(2)
	require.ErrorIs(t, s.Acquire(t.Context(), 3), semaphore.ErrTooLarge)
	require.False(t, s.TryAcquireFor(3, time.Hour))
	require.NoError(t, s.Acquire(t.Context(), 1))
}

// TestLargeAcquireDoesntStarve
func TestLargeAcquireDoesNotStarve(t *testing.T) {
	const n = 4
	s := semaphore.NewWeighted(n)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range n {
		require.NoError(t, s.Acquire(t.Context(), 1))
		wg.Go(func() {
			for !stop.Load() {
				s.Release(1)
				if s.Acquire(t.Context(), 1) != nil {
					t.Error("not acquired")
				}
			}
			s.Release(1)
		})
	}
	require.NoError(t, s.Acquire(t.Context(), n))
	stop.Store(true)
	s.Release(n)
	wg.Wait()
}

// TestAllocCancelDoesntStarve
func TestCancelledLargeAcquireAdmitsSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(10)
		require.True(t, s.TryAcquire(1))
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		go func() { err = s.Acquire(ctx, 10) }()
		synctest.Wait()
		require.False(t, s.TryAcquire(1), "9 are free, but a goroutine waits")
		small := false
		go func() { small = s.Acquire(t.Context(), 1) == nil }()
		synctest.Wait()
		require.False(t, small)
		cancel()
		synctest.Wait()
		require.True(t, small)
		require.Equal(t, context.Canceled, err)
	})
}

// TestWeightedAcquireCanceled, https://go.dev/issue/63615
func TestContextThatEndsBeforeTheReleaseFails(t *testing.T) {
	for range 1000 {
		s := semaphore.NewWeighted(2)
		require.True(t, s.TryAcquire(1))
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			for !s.HasQueued() {
				runtime.Gosched()
			}
			cancel()
			s.Release(1)
		})
		require.Equal(t, context.Canceled, s.Acquire(ctx, 2))
		wg.Wait()
		require.True(t, s.TryAcquire(2), "all permits are free")
		s.Release(2)
		require.Equal(t, context.Canceled, s.Acquire(ctx, 1), "also without a wait")
	}
}

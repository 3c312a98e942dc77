package locktest

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Allocations is that there are none.
var Allocations = []Situation{
	{"no uncontended path allocates", func(t *testing.T, k Kind) {
		l := k.New()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		bg := context.Background()
		for name, f := range map[string]func(){
			"Lock":                             func() { l.Lock(); l.Unlock() },
			"TryLock":                          func() { l.TryLock(); l.Unlock() },
			"TryLockFor":                       func() { l.TryLockFor(time.Hour); l.Unlock() },
			"TryLockFor 0":                     func() { l.TryLockFor(0); l.Unlock() },
			"LockContext background":           func() { _ = l.LockContext(bg); _ = l.UnlockContext(bg) },
			"LockContext cancellable":          func() { _ = l.LockContext(ctx); _ = l.UnlockContext(ctx) },
			"TryLockContext":                   func() { _, _ = l.TryLockContext(ctx); _ = l.UnlockContext(ctx) },
			"the queries that return a number": func() { l.IsLocked(); l.HasQueued(); l.QueueLength() },
		} {
			require.Zero(t, testing.AllocsPerRun(200, f), name)
			require.False(t, l.IsLocked(), name)
		}
	}},
	{"no failed try of a held lock allocates", func(t *testing.T, k Kind) {
		l := k.New()
		release, done := make(chan struct{}), make(chan struct{})
		go func() { l.Lock(); <-release; l.Unlock(); close(done) }()
		Await(t, l.IsLocked, "the holder")
		require.Zero(t, testing.AllocsPerRun(200, func() { l.TryLock() }))
		require.Zero(t, testing.AllocsPerRun(200, func() { l.TryLockFor(0) }))
		require.Zero(t, testing.AllocsPerRun(200, func() { l.TryLockFor(math.MinInt64) }))
		close(release)
		<-done
	}},
	{"a contended Lock allocates nothing in the steady state", func(t *testing.T, k Kind) {
		if Race {
			return // under the race detector a sync.Pool drops what it is given at random
		}
		// Each run holds the lock until the other goroutine waits for it, so that every
		// acquisition of the other goroutine goes through the queue.
		l := k.New()
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				l.Lock()
				l.Unlock() //nolint:staticcheck // empty on purpose
			}
		})
		run := func() {
			l.Lock()
			for !l.HasQueued() {
				runtime.Gosched()
			}
			l.Unlock()
		}
		for range 100 {
			run()
		}
		require.Zero(t, testing.AllocsPerRun(1000, run))
		stop.Store(true)
		wg.Wait()
		Works(t, l)
	}},
}

//go:build !race

package spin_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
)

// The test is not for the race detector, under which a sync.Pool drops elements at random.

// TestAHandOverToASleeperAllocatesNothing waits until it sees the waiter in the queue. A waiter
// that still spins for a Ticket is not there.
func TestAHandOverToASleeperAllocatesNothing(t *testing.T) {
	for _, k := range locktest.Spin() {
		t.Run(k.Name, func(t *testing.T) {
			l := k.New()
			var stop atomic.Bool
			var me atomic.Int64
			var wg sync.WaitGroup
			wg.Go(func() {
				me.Store(int64(locktest.Me()))
				for !stop.Load() {
					l.Lock()
					l.Unlock() //nolint:staticcheck // empty on purpose
				}
			})
			run := func() {
				l.Lock()
				for !l.IsQueued(locks.Owner(me.Load())) {
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
		})
	}
}

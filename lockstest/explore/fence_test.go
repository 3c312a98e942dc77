//go:build lockexplore

package explore_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/lockstest/explore"
)

// sell has two processes sell the last piece under a lease that any schedule may end. Each reads
// the stock, pauses, and writes it. The gate is nil for a stock that looks at no token.
func sell(x *explore.X, gate *fence.Gate) {
	var mu sync.Mutex // of the stock, for a step that is not under the gate
	stock, sold := 1, 0
	step := func(token uint64, f func()) error {
		if gate != nil {
			return gate.Do("stock", token, func() error { f(); return nil })
		}
		mu.Lock()
		defer mu.Unlock()
		f()
		return nil
	}
	lease := x.NewLease("stock")
	for range 2 {
		x.Go("sells", func() {
			_ = locks.Do(x.Context(), lease, func(ctx context.Context) error {
				hold, _ := locks.HoldFrom(ctx)
				left := 0
				if err := step(hold.Token(), func() { left = stock }); err != nil || left == 0 {
					return err
				}
				x.Step()
				return step(hold.Token(), func() { stock, sold = left-1, sold+1 })
			})
		})
	}
	x.Wait()
	x.Check(sold <= 1, "%d pieces of 1 were sold", sold)
}

func TestAGateSellsThePieceOnceUnderAllLosses(t *testing.T) {
	explore.Run(t, func(x *explore.X) { sell(x, new(fence.Gate)) })
}

func TestWithoutAGateALossSellsThePieceTwice(t *testing.T) {
	explore.Run(t, func(x *explore.X) { sell(x, nil) }, explore.Expect(explore.Failure))
}

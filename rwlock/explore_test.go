package rwlock_test

import (
	"testing"

	"github.com/jucgo/locks/lockstest/explore"
)

func TestAPointLeavesTheOriginOnce(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var p Point
		moved := [2]bool{}
		for i := range moved {
			x.Go("moves", func() { moved[i] = p.MoveFromOrigin(3, 4) })
		}
		x.Wait()
		x.Check(moved[0] != moved[1], "moved %v", moved)
	})
}

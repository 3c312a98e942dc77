//go:build lockexplore

package explore_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/lockstest/explore"
)

// The addresses of the sets differ from run to run. A Multi that is ordered by them would begin
// with another member in each run, and explore could repeat no schedule.
func TestAMultiOfSeveralSetsHasOneOrderInAllRuns(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var members []locks.TryLocker
		for range 8 {
			members = append([]locks.TryLocker{keyed.New[int](locks.FIFO).Of(1)}, members...)
		}
		ordered := locks.Multi(members...).(interface{ Unwrap() []locks.TryLocker }).Unwrap()
		x.Step() // a decision, without which explore finds nothing to explore
		for i, l := range ordered {
			x.Check(l == members[i], "member %d is another one", i)
		}
	})
}

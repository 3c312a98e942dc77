//go:build lockexplore

package explore_test

import (
	"testing"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest/explore"
	"github.com/jucgo/locks/singleton"
)

func TestNoScheduleMakesAValueTwice(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var mu fair.Mutex
		made := 0
		l := singleton.New(func() (int, error) {
			mu.Lock()
			defer mu.Unlock()
			made++
			return made, nil
		})
		for range 2 {
			x.Go("gets", func() {
				n, err := l.Get()
				x.Check(n == 1 && err == nil, "%d, %v", n, err)
			})
		}
		x.Wait()
		x.Check(made == 1, "made %d times", made)
	})
}

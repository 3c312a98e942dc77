//go:build lockexplore && !race

package explore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
)

// These searches have thousands of schedules. With the race detector each takes ten times as long.

// sections has n goroutines with k critical sections each.
func sections(n, k int, which func(i, k int) int) func(x *X) {
	return func(x *X) {
		var locks [8]fair.Mutex
		for i := range n {
			x.Go("works", func() {
				for k := range k {
					m := &locks[which(i, k)]
					m.Lock()
					m.Unlock()
				}
			})
		}
	}
}

func TestFourGoroutinesWithFiveSectionsAreComplete(t *testing.T) {
	r := correct(t, sections(4, 5, func(i, _ int) int { return i }), Preemptions(2), Schedules(100_000), Within(time.Minute))
	require.NotEmpty(t, r.complete)
	t.Log(r.schedules, r.complete)
}

func TestFiveGoroutinesWithThreeSectionsAreComplete(t *testing.T) {
	r := correct(t, sections(5, 3, func(i, _ int) int { return i }), Preemptions(2), Schedules(100_000), Within(time.Minute))
	require.NotEmpty(t, r.complete)
	t.Log(r.schedules, r.complete)
}

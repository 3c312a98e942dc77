//go:build lockexplore && !race

package explore

import (
	"fmt"
	"slices"
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

func TestManySectionsAreComplete(t *testing.T) {
	for _, n := range manySections {
		for name, which := range map[string]func(i, k int) int{
			"locks of their own": func(i, _ int) int { return i },
			"one lock":           func(int, int) int { return 0 },
		} {
			t.Run(fmt.Sprintf("%d goroutines, %d sections, %s", n[0], n[1], name), func(t *testing.T) {
				r := correct(t, sections(n[0], n[1], which), Preemptions(2), Schedules(100_000), Within(time.Minute))
				require.NotEmpty(t, r.complete)
				t.Logf("%d schedules, %s%s", r.schedules, r.complete, r.alike)
			})
		}
	}
}

// By default a search has a budget of schedules, and then a budget of time for the rest.
func TestTheDefaultSearchOfManySectionsIsComplete(t *testing.T) {
	if !slices.Contains(manySections, [2]int{5, 3}) {
		return // a busy machine may take longer than the search has
	}
	r := correct(t, sections(5, 3, func(int, int) int { return 0 }))
	require.NotEmpty(t, r.complete)
	require.Greater(t, r.schedules, DefaultSchedules)
	t.Logf("%d schedules, %s%s", r.schedules, r.complete, r.alike)
}

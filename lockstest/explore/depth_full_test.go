//go:build lockexplore && simulation

package explore

// atMost returns how many schedules a test searches: all n of the full run.
func atMost(n int) Option { return Schedules(n) }

// replays is how often a finding of the corpus is replayed.
const replays = 20

// manySections are numbers of goroutines and of their sections.
var manySections = [][2]int{{4, 3}, {4, 5}, {5, 3}}

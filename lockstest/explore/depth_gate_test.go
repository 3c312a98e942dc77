//go:build lockexplore && !simulation

package explore

// atMost returns how many schedules a test searches that has n in the full run: each change runs a
// part of them.
func atMost(n int) Option { return Schedules(n / 4) }

// manySections are numbers of goroutines and of their sections.
var manySections = [][2]int{{4, 3}}

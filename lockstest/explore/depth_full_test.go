//go:build lockexplore && simulation

package explore

// atMost returns how many schedules a test searches: all n of the full run.
func atMost(n int) Option { return Schedules(n) }

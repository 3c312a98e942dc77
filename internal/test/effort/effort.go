// Package effort tells a test how far it searches for mistakes.
package effort

import "os"

// Part returns how much of n a test searches: simulated time, schedules, or repetitions. With
// LOCKS_SEARCH=all it is all of n, otherwise a quarter. The gate sets LOCKS_SEARCH for the newer Go
// release, and the full run sets it for all steps.
func Part[N ~int | ~int64](n N) N {
	if os.Getenv("LOCKS_SEARCH") == "all" {
		return n
	}
	return n / 4
}

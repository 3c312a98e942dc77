// Package effort tells a test how far it searches for mistakes.
package effort

import "os"

// Part returns how much of n a test searches: simulated time, schedules, or repetitions. The gate
// searches all of it, and sets LOCKS_SEARCH. All other runs search a quarter.
func Part[N ~int | ~int64](n N) N {
	if os.Getenv("LOCKS_SEARCH") == "all" {
		return n
	}
	return n / 4
}

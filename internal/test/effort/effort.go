// Package effort tells a test how far it searches for mistakes, and by which seeds. The variable
// LOCKS_SEARCH decides:
//
//   - without it, a test searches a quarter, or an eighth with the race detector, by the same seeds
//     in each run
//   - with LOCKS_SEARCH=all, a test searches all, by the same seeds in each run
//   - with LOCKS_SEARCH=new, a test searches all, by new seeds
//
// So a change is not refused for a rare finding that has nothing to do with it. The gate sets
// LOCKS_SEARCH=all for the newer Go release, and the full run sets LOCKS_SEARCH=new for all steps.
package effort

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
)

// Part returns how much of n a test searches: simulated time, schedules, waiters, or repetitions.
func Part[N ~int | ~int64](n N) N {
	if search := os.Getenv("LOCKS_SEARCH"); search == "all" || search == "new" {
		return n
	}
	return n / share
}

// Seed returns the seed of the random search called name, or a new seed with LOCKS_SEARCH=new.
func Seed(name string) uint64 {
	if os.Getenv("LOCKS_SEARCH") == "new" {
		return rand.Uint64()
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return h.Sum64()
}

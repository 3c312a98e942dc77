//go:build lockexplore && !simulation

package explore

import "github.com/jucgo/locks/internal/test/effort"

// atMost returns how many schedules a test searches that has n in the full run: each change runs a
// part of them.
func atMost(n int) Option { return Schedules(effort.Part(n / 4)) }

// replays is how often a finding of the corpus is replayed.
var replays = effort.Part(20)

// manySections are numbers of goroutines and of their sections.
var manySections = [][2]int{{4, 3}}

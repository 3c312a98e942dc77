package bench

import (
	"math"
	"sync"
	"time"
)

// Work computes for about d, without touching memory or yielding.
func Work(d time.Duration) { busy(Rounds(d)) }

// Rounds returns how many rounds of computation take about d on this machine. The first call
// takes some milliseconds to find out.
func Rounds(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	return max(1, int(math.Round(float64(d)/nanosPerRound())))
}

// nanosPerRound is the time of a round of busy. The shortest of many short measurements counts:
// every disturbance, such as the loss of the processor, makes a measurement longer.
var nanosPerRound = sync.OnceValue(func() float64 {
	const rounds = 10_000
	best := time.Duration(math.MaxInt64)
	for range 200 {
		start := time.Now()
		busy(rounds)
		best = min(best, time.Since(start))
	}
	return float64(best) / rounds
})

// busy computes for n rounds. Each round needs the result of the previous round, so that the
// rounds take their time on any CPU. The last result is used, or else the compiler might leave
// all rounds out.
//
//go:noinline
func busy(n int) {
	x := uint64(n) | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 {
		panic("bench: a xorshift generator arrived at zero")
	}
}

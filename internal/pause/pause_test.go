package pause

import (
	"testing"
	"time"
)

func TestPauseReturnsAlsoForNone(t *testing.T) {
	Pause(0)
	Pause(1)
}

func TestMorePausesTakeMoreTime(t *testing.T) {
	measure := func(n uint32) time.Duration {
		best := time.Hour
		for range 50 {
			start := time.Now()
			Pause(n)
			best = min(best, time.Since(start))
		}
		return best
	}
	if few, many := measure(10), measure(10_000); many < 10*few {
		t.Errorf("10 pauses take %v, 10000 take %v", few, many)
	}
}

func BenchmarkPause(b *testing.B) {
	for b.Loop() {
		Pause(1)
	}
}

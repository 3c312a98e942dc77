package pause

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortest is the time of n pauses without an interruption.
func shortest(n uint32) time.Duration {
	best := time.Hour
	for range 50 {
		start := time.Now()
		Pause(n)
		best = min(best, time.Since(start))
	}
	return best
}

func TestNoPauseTakesNoTime(t *testing.T) {
	// A loop that counts down before it looks would take two minutes.
	require.Less(t, shortest(0), time.Millisecond)
}

func TestMorePausesTakeMoreTime(t *testing.T) {
	few, many := shortest(10), shortest(10_000)
	require.Greater(t, many, 10*few)
}

func BenchmarkPause(b *testing.B) {
	for b.Loop() {
		Pause(1)
	}
}

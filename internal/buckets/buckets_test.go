package buckets

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachBucketBeginsAtThePreviousEnd(t *testing.T) {
	for _, s := range []Scale{0, 1, 5} {
		end := time.Duration(0)
		for i := 0; end >= 0; i++ { // until it overflows
			low, width := s.Range(i)
			require.Equal(t, end, low)
			require.Equal(t, i, s.Index(low))
			require.Equal(t, i, s.Index(low+width-1))
			require.LessOrEqual(t, width, max(1, low>>s))
			end = low + width
		}
		require.Zero(t, s.Index(math.MinInt64))
	}
}

func TestQuantilesOfAFewDurations(t *testing.T) {
	const s Scale = 5
	counts := make([]uint64, 64<<s)
	require.Zero(t, s.Quantile(counts, 0.5))
	for _, d := range []time.Duration{3, 5, 1000} {
		counts[s.Index(d)]++
	}
	for q, want := range map[float64]time.Duration{-1: 3, 0: 3, 0.3: 3, 0.5: 5, 0.7: 992, 1: 992} {
		require.Equal(t, want, s.Quantile(counts, q), "quantile %v", q)
	}
}

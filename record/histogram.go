package record

import (
	"time"

	"github.com/jucgo/locks/internal/buckets"
)

// Buckets is the number of buckets of a [Histogram].
const Buckets = 41

const scale buckets.Scale = 0 // a bucket for each power of two

// BucketUpperBound returns the upper bound of bucket i: 1 ns, 2 ns, 4 ns and so on. A duration
// equal to the bound belongs to the next bucket. The last bucket begins at about nine minutes and
// is without a bound: BucketUpperBound returns the largest duration.
func BucketUpperBound(i int) time.Duration {
	if i >= Buckets-1 {
		return 1<<63 - 1
	}
	return 1 << i
}

// Histogram has the number of durations in each bucket, and the sum of all. It is a plain value.
type Histogram struct {
	Counts [Buckets]uint64
	Sum    time.Duration
}

// Count returns the number of durations.
func (h *Histogram) Count() uint64 {
	n := uint64(0)
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the duration that a share q of all durations does not exceed. q is from 0 to
// 1. The result is exact to a factor of two, the width of a bucket. It is 0 for an empty
// Histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	return scale.Quantile(h.Counts[:], q)
}

func (h *Histogram) add(d time.Duration) {
	h.Counts[min(scale.Index(d), Buckets-1)]++
	h.Sum += max(d, 0)
}

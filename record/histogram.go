package record

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Buckets is the number of buckets of a [Histogram].
const Buckets = 41

// BucketUpperBound returns the upper bound of bucket i: 1 ns, 2 ns, 4 ns and so on. The bound
// itself belongs to the next bucket. The last bucket begins at about nine minutes. It has no
// bound, for which BucketUpperBound returns the largest duration.
func BucketUpperBound(i int) time.Duration {
	if i >= Buckets-1 {
		return 1<<63 - 1
	}
	return 1 << i
}

// Histogram has the number of durations in each bucket, and their sum. It is a plain value.
type Histogram struct {
	Counts [Buckets]uint64
	Sum    time.Duration
}

// Count returns the number of durations.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the duration that a share q of all durations does not exceed. q is from 0 to
// 1. The result is exact to a factor of two, the width of a bucket. It is 0 for an empty
// Histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := min(uint64(max(q, 0)*float64(n)), n-1)
	for i, c := range h.Counts {
		if rank >= c {
			rank -= c
			continue
		}
		if i == 0 {
			return 0
		}
		low := time.Duration(1) << (i - 1)
		// Assume that the durations of a bucket are spread evenly over it.
		return low + time.Duration(float64(low)*float64(rank)/float64(c))
	}
	return 0
}

// live is a Histogram that is being filled.
type live struct {
	counts [Buckets]atomic.Uint64
	sum    atomic.Int64
}

func (l *live) add(d time.Duration) {
	d = max(d, 0)
	l.counts[min(bits.Len64(uint64(d)), Buckets-1)].Add(1)
	l.sum.Add(int64(d))
}

func (l *live) snapshot() (h Histogram) {
	for i := range l.counts {
		h.Counts[i] = l.counts[i].Load()
	}
	h.Sum = time.Duration(l.sum.Load())
	return h
}

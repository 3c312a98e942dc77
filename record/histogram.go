package record

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Buckets is how many buckets a [Histogram] has.
const Buckets = 41

// Bound returns the upper bound of bucket i, which is not part of it: 1 ns, 2 ns, 4 ns and so
// on. The last bucket, from about nine minutes, has none, and its Bound is the largest
// duration.
func Bound(i int) time.Duration {
	if i >= Buckets-1 {
		return 1<<63 - 1
	}
	return 1 << i
}

// Histogram is how many durations fell into each bucket, and their sum. It is a plain value.
type Histogram struct {
	Counts [Buckets]uint64
	Sum    time.Duration
}

// Count returns how many durations there are.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the duration that a share of q, from 0 to 1, does not exceed, to within the
// factor of two that a bucket is wide, or 0 if there is none.
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
		// Values are taken to lie evenly in their bucket.
		return low + time.Duration(float64(low)*float64(rank)/float64(c))
	}
	return 0
}

// live is a Histogram in the making.
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

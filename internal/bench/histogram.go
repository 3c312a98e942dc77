package bench

import (
	"math/bits"
	"time"
)

// Each power of two is divided into subBuckets parts. Therefore a bucket is no wider than
// 1/subBuckets of its values.
const (
	subBits    = 5
	subBuckets = 1 << subBits
)

// Histogram counts durations in log-linear buckets, to 3 % of each. Adding takes a few
// instructions and no memory. The zero Histogram is empty. It is not safe for concurrent use:
// each goroutine has its own, for [Histogram.Merge].
type Histogram struct {
	buckets [64 * subBuckets]uint64
	n       uint64
	sum     time.Duration
	max     time.Duration
}

// bucketOf returns the index of v's bucket. The first subBuckets values have a bucket each.
func bucketOf(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return (shift+1)<<subBits + int(v>>shift) - subBuckets
}

// bucketRange returns the least value of a bucket and the width of it.
func bucketRange(i int) (low, width uint64) {
	if i < subBuckets {
		return uint64(i), 1
	}
	shift := i>>subBits - 1
	return uint64(subBuckets+i&(subBuckets-1)) << shift, 1 << shift
}

// Add counts d; a negative one as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(uint64(d))]++
	h.n++
	h.sum += d
	h.max = max(h.max, d)
}

// Merge adds all of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.n += o.n
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// Count returns how many durations were added.
func (h *Histogram) Count() uint64 { return h.n }

// Sum returns the sum of all durations, exactly.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Max returns the longest duration, exactly, or 0.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns the duration that a share q of all durations does not exceed. q is from 0 to
// 1. The result for an empty histogram is 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := min(uint64(q*float64(h.n)), h.n-1)
	var below uint64
	for i, n := range h.buckets {
		if rank < below+n {
			low, width := bucketRange(i)
			// Assume that the values of a bucket are spread evenly over it.
			part := float64(rank-below) / float64(n) * float64(width)
			return min(time.Duration(low+uint64(part)), h.max)
		}
		below += n
	}
	return h.max
}

// QuantileByTime returns the duration d for which durations of at most d make up a share q of the
// sum of all. Of waits, a share q of the time spent waiting is spent in waits of at most d. A
// random moment of waiting meets such a wait. Unlike for Quantile, a thousand short waits count
// no more than one that takes as long as all of them. The result for an empty histogram is 0.
func (h *Histogram) QuantileByTime(q float64) time.Duration {
	middle := func(i int) float64 {
		low, width := bucketRange(i)
		return float64(low) + float64(width-1)/2
	}
	var total float64
	for i, n := range h.buckets {
		total += float64(n) * middle(i)
	}
	var below float64
	for i, n := range h.buckets {
		if n == 0 {
			continue
		}
		if below += float64(n) * middle(i); below >= q*total {
			return min(time.Duration(middle(i)), h.max)
		}
	}
	return h.max
}

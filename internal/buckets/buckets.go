// Package buckets is the arithmetic of histograms of durations.
package buckets

import (
	"math/bits"
	"time"
)

// Scale divides each power of two into 1<<Scale buckets of equal width. Therefore a bucket is at
// most 1/(1<<Scale) as wide as its values are great.
type Scale uint

// Index returns the index of d's bucket. A negative d counts as 0.
func (s Scale) Index(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 1<<s {
		return int(v) // each of these values has a bucket of its own
	}
	shift := bits.Len64(v) - int(s) - 1
	return (shift+1)<<s + int(v>>shift) - 1<<s
}

// Range returns the least value of bucket i and the width of the bucket.
func (s Scale) Range(i int) (low, width time.Duration) {
	if i < 1<<s {
		return time.Duration(i), 1
	}
	shift := i>>s - 1
	return time.Duration(1<<s+i&(1<<s-1)) << shift, 1 << shift
}

// Quantile returns the duration that a share q of all durations does not exceed. counts has the
// number of durations in each bucket. The result is 0 if there are none.
func (s Scale) Quantile(counts []uint64, q float64) time.Duration {
	var all uint64
	for _, n := range counts {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank := min(uint64(max(q, 0)*float64(all)), all-1)
	for i, n := range counts {
		if rank < n {
			low, width := s.Range(i)
			// Assume that the durations of a bucket are spread evenly over it.
			return low + time.Duration(float64(width)*float64(rank)/float64(n))
		}
		rank -= n
	}
	return 0
}

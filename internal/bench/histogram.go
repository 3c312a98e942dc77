package bench

import (
	"time"

	"github.com/jucgo/locks/internal/buckets"
)

const scale buckets.Scale = 5 // 32 buckets for each power of two

// Histogram counts durations in log-linear buckets, to 3 % of each. Adding takes a few
// instructions and no memory. The zero Histogram is empty. It is not safe for concurrent use:
// each goroutine has its own, for [Histogram.Merge].
type Histogram struct {
	buckets [64 << scale]uint64
	n       uint64
	sum     time.Duration
	max     time.Duration
}

// Add counts d; a negative one as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.buckets[scale.Index(d)]++
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
	return min(scale.Quantile(h.buckets[:], q), h.max)
}

// QuantileByTime returns the duration d for which durations of at most d make up a share q of the
// sum of all. Of waits, a share q of the time spent waiting is spent in waits of at most d. A
// random moment of waiting meets such a wait. Unlike for Quantile, a thousand short waits count
// no more than one wait that takes as long as all of them. The result for an empty histogram is 0.
func (h *Histogram) QuantileByTime(q float64) time.Duration {
	middle := func(i int) float64 {
		low, width := scale.Range(i)
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

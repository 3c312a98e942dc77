// Package clock has the clock that measures holds. It is for packages lease and driver.
package clock

import (
	"sync/atomic"
	"time"
)

// Now returns the present by the clock that measures holds. Its differences count the time during
// which the machine was suspended, as CLOCK_BOOTTIME does on Linux. [time.Now] does not count it.
//
// Compare such a time only with other times from Now. On systems other than Linux it is time.Now.
func Now() time.Time {
	now := time.Now()
	return now.Add(Suspended(now))
}

// reading is a comparison of the clocks, and the suspensions that it shows.
type reading struct {
	ahead     time.Duration // wall clock minus monotonic clock, both since start
	suspended time.Duration // since start
}

var (
	start   = time.Now()
	startOf = systemSuspended()
	last    atomic.Pointer[reading]
)

func init() { last.Store(new(reading)) }

const (
	// skew is a difference between two clocks that means nothing, since they are read one after
	// the other.
	skew = 10 * time.Millisecond
	// step is the change between the wall clock and the monotonic clock from which on the system
	// is asked.
	step = time.Millisecond
)

// Suspended returns how long the machine was suspended between the start of the process and now.
//
// A suspension moves the wall clock ahead of the monotonic clock. time.Now reads both. Therefore
// the system is asked only if the difference of the clocks has changed. A setting of the wall
// clock changes it as well.
func Suspended(now time.Time) time.Duration {
	r := last.Load()
	ahead := now.Round(0).Sub(start.Round(0)) - now.Sub(start)
	if (ahead - r.ahead).Abs() < step {
		return r.suspended
	}
	next := &reading{ahead, systemSuspended() - startOf}
	if (next.suspended - r.suspended).Abs() < skew { // the wall clock was set
		next.suspended = r.suspended
	}
	last.CompareAndSwap(r, next)
	return next.suspended
}

package filelock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
)

// Owners that have left the local queue poll for the kernel's lock. A thread that sleeps in flock
// would notice a release sooner, but a cancelled waiter could not wake the thread, and the thread
// would acquire the lock later.
const (
	shortest = time.Millisecond
	longest  = 25 * time.Millisecond
	// giveWayKnown is how long a process gives way to others that wait: long enough for each of
	// them to try once.
	giveWayKnown = longest + 5*time.Millisecond
	// giveWayUnknown replaces giveWayKnown if the system does not tell whether another process
	// waits.
	giveWayUnknown = time.Millisecond
	// maxLocalTime is how long a lock goes from one local holder to the next before a release
	// unlocks the file.
	maxLocalTime = 100 * time.Millisecond
)

// poll calls try until it succeeds, fails, or ctx ends. Between two tries it pauses for 1 ms first,
// then half as long again each time, up to 25 ms. The pause is a random part of that time, at least
// half, so that pollers do not all try at once. poll tells other processes that this process waits.
func (f *file) poll(ctx context.Context, try func() (bool, error)) error {
	f.d.mark()
	defer f.d.unmark()
	for next := shortest; ; next = min(next+next/2, longest) {
		if ok, err := try(); ok || err != nil {
			return err
		}
		if !adapter.Sleep(ctx, next/2+rand.N(next/2)) {
			return ctx.Err()
		}
	}
}

// giveWay returns after d, or sooner if no other process is known to wait any more.
func (f *file) giveWay(ctx context.Context, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && adapter.Sleep(ctx, shortest); {
		if waits, known := f.d.marked(); known && !waits {
			return
		}
	}
}

// mayHandOff reports whether a release may hand the kernel's lock off to the next local waiter.
// f.mu is held.
func (f *file) mayHandOff(most int) bool {
	if f.mode == unlocked || most == 0 || !f.local.HasQueued() {
		return false
	}
	if f.handedOff.IsZero() {
		f.handedOff = time.Now()
	}
	if f.turns <= most && time.Since(f.handedOff) < maxLocalTime {
		return true
	}
	f.yielded = true
	return false
}

// courtesy returns how long this process should give way to others, because it has had its
// share of turns, whether by hand-off or from the kernel.
func (f *file) courtesy(most int) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mode != unlocked || f.turns <= most && !f.yielded {
		return 0
	}
	yielded := f.yielded
	f.turns, f.yielded = 0, false
	if waits, known := f.d.marked(); waits {
		return giveWayKnown
	} else if !known && yielded {
		return giveWayUnknown
	}
	return 0
}

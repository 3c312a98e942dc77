package filelock

import (
	"context"
	"math/rand/v2"
	"time"
)

// How those wait for the kernel's lock who have passed the gate: they try, again and again. A thread that sleeps in flock would
// learn of a release sooner, but nothing gets it out of there before that, and so a waiter whose context ends
// would leave it behind, and with it a lock that comes late.
const (
	shortest = time.Millisecond
	longer   = 25 * time.Millisecond
	// way is for how long a process lets others go first that wait: long enough for each of them to try.
	way = longer + 5*time.Millisecond
	// maybe is the same if it is unknown whether there are others.
	maybe = time.Millisecond
	// stay is for how long a lock goes from one to the next here before it is given back.
	stay = 100 * time.Millisecond
)

// waiting is one who tries again and again.
type waiting struct {
	timer  *time.Timer
	last   time.Duration
	pauses int
}

// next returns how long to pause before the next try: from 1 ms on, and half as much longer each time, up to 25 ms, and
// of that a random part between half and all, so that those who wait do not all try at once.
func (w *waiting) next() time.Duration {
	w.pauses++
	if w.last = min(w.last+w.last/2, longer); w.last == 0 {
		w.last = shortest
	}
	return w.last/2 + rand.N(w.last/2)
}

// wait returns after d, or when one of the contexts ends.
func (w *waiting) wait(a, b context.Context, d time.Duration) {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	select {
	case <-w.timer.C:
	case <-a.Done():
	case <-b.Done():
	}
}

func (w *waiting) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// mayPass reports whether the kernel's lock may go to the next one at the gate. f.mu is held.
func (f *file) mayPass(cohort int) bool {
	if f.mode == unlocked || cohort == 0 || !f.gate.HasQueued() {
		return false
	}
	if f.passed.IsZero() {
		f.passed = time.Now()
	}
	if f.turns <= cohort && time.Since(f.passed) < stay {
		return true
	}
	f.owed = true
	return false
}

// courtesy returns for how long those here should let others go first, because they have had their share: each cohort's
// time, whether
// they got the lock from each other or from the kernel. f.mu is held.
func (f *file) courtesy(cohort int) time.Duration {
	if f.mode != unlocked || f.turns <= cohort && !f.owed {
		return 0
	}
	owed := f.owed
	f.turns, f.owed = 0, false
	if waits, known := f.d.marked(); waits {
		return way
	} else if !known && owed {
		return maybe
	}
	return 0
}

// giveWay returns after d, or sooner if nobody else is known to wait any more.
func (f *file) giveWay(ctx, open context.Context, w *waiting, d time.Duration) {
	for end := time.Now().Add(d); ctx.Err() == nil && open.Err() == nil && time.Now().Before(end); {
		w.wait(ctx, open, shortest)
		f.mu.Lock()
		waits, known := f.d.marked()
		f.mu.Unlock()
		if known && !waits {
			return
		}
	}
}

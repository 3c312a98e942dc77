package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrExclusion reports a lock that let two goroutines in at a time.
var ErrExclusion = errors.New("bench: mutual exclusion violated")

// Contest describes how goroutines contend for a lock.
type Contest struct {
	// Goroutines is the number of goroutines.
	Goroutines int
	// Ops is the number of acquisitions that all share. A goroutine that acquires the lock more
	// often does more of them. 0 means no limit.
	Ops int
	// For ends the contest after some time. 0 means no limit.
	For time.Duration
	// Inside and Outside are how long each goroutine works with the lock and between an unlock
	// and the next lock.
	Inside, Outside time.Duration
	// Sample has every Sample-th acquisition of each goroutine timed; 0 is none. Reading the clock
	// twice takes longer than a lock does in the best case: sample where the section is short. The
	// longest wait is the longest of the timed waits.
	Sample int
	// Longest has [Contended] tell the longest wait instead of the p99 wait.
	Longest bool
	// Streaks has streaks counted, which takes an atomic store an acquisition.
	Streaks bool
	// Begin and End, if not nil, are called right before and after the contest: when all
	// goroutines are ready, and when all are through. A benchmark starts and stops its timer
	// there.
	Begin, End func()
}

// Result is the result of a contest.
type Result struct {
	// Ops is the number of acquisitions.
	Ops int
	// Elapsed is how long all of them took.
	Elapsed time.Duration
	// Waits are the times from calling Lock to having the lock.
	Waits Histogram
	// Counts are the acquisitions of each goroutine.
	Counts []int
	// Jain is Jain's index of Counts.
	Jain float64
	// Waiting is the share of their time that the goroutines spent waiting, from 0 to 1. It is 0
	// unless waits were timed.
	Waiting float64
	// Streak is the greatest number of acquisitions in a row by one goroutine while others
	// waited. It is 1 if no goroutine was overtaken.
	Streak int
}

// PerOp returns the nanoseconds that an acquisition took, all goroutines taken together.
func (r *Result) PerOp() float64 {
	if r.Ops == 0 {
		return 0
	}
	return float64(r.Elapsed) / float64(r.Ops)
}

// settle is how long goroutines that were about to wait get to do so.
const settle = time.Millisecond

// contestant is one goroutine of a contest. It is padded to two cache lines, which CPUs fetch in
// pairs, so that contestants don't slow each other down.
type contestant struct {
	// asked is the number of Lock calls. The contestant writes it.
	asked atomic.Uint64
	// got is the number of Lock calls that have returned, and guarded by the lock. asked is one
	// ahead for as long as the contestant waits.
	got uint64
	// acquired is the number of acquisitions that count.
	acquired int
	_        [104]byte
}

// contest is the state that all goroutines share.
type contest struct {
	Contest
	lock            sync.Locker
	inside, outside int // rounds of work
	start           time.Time
	contestants     []contestant
	waits           []*Histogram
	stop            atomic.Bool // written once, so that reading it costs little

	_ [128]byte // What follows is written at each acquisition.

	// The rest is guarded by the lock.
	left     int
	acquired int // written at the end of the section what was read at its start
	streaks  streaks
	hint     int // the contestant that anyWaits found last
}

// Contend has goroutines contend for l as c says. It returns an error if l let more than one of
// them in at a time, or if ctx ended before the contest did. A contest without a limit goes on
// until ctx ends.
func Contend(ctx context.Context, l sync.Locker, c Contest) (Result, error) {
	if c.Goroutines < 1 {
		return Result{}, fmt.Errorf("bench: contest of %d goroutines", c.Goroutines)
	}
	k := &contest{
		Contest:     c,
		lock:        l,
		inside:      Rounds(c.Inside),
		outside:     Rounds(c.Outside),
		contestants: make([]contestant, c.Goroutines),
		waits:       make([]*Histogram, c.Goroutines),
		left:        c.Ops,
	}
	if c.Ops == 0 {
		k.left = int(^uint(0) >> 1)
	}

	// All contestants queue behind the caller, and then start at once. If the scheduler started
	// them one by one, each of the first would have the lock to itself for a time slice. The
	// contest might be over before the last contestant begins.
	l.Lock()
	var ready, done sync.WaitGroup
	for i := range c.Goroutines {
		if c.Sample > 0 {
			k.waits[i] = new(Histogram)
		}
		ready.Add(1)
		done.Go(func() { k.run(i, &ready) })
	}
	ready.Wait()
	time.Sleep(settle)

	halt := func() { k.stop.Store(true) }
	defer context.AfterFunc(ctx, halt)()
	if c.Begin != nil {
		c.Begin()
	}
	k.start = time.Now()
	if c.For > 0 {
		defer time.AfterFunc(c.For, halt).Stop()
	}
	l.Unlock()
	done.Wait()
	r := Result{Elapsed: time.Since(k.start)}
	if c.End != nil {
		c.End()
	}

	r.Counts = make([]int, c.Goroutines)
	for i := range k.contestants {
		r.Counts[i] = k.contestants[i].acquired
		r.Ops += r.Counts[i]
		if c.Sample > 0 {
			r.Waits.Merge(k.waits[i])
		}
	}
	if c.Sample > 0 {
		r.Waiting = min(1, float64(r.Waits.Sum())*float64(c.Sample)/float64(r.Elapsed)/float64(c.Goroutines))
	}
	r.Jain = Jain(r.Counts)
	r.Streak = k.streaks.longest
	if k.acquired != r.Ops {
		return r, fmt.Errorf("%w: %d acquisitions left a counter at %d", ErrExclusion, r.Ops, k.acquired)
	}
	return r, ctx.Err()
}

// run has the steps of goroutine i. It reports ready right before it waits for the lock for the
// first time. If waits are timed, the first wait is timed from the start of the contest on: a
// goroutine that is left out for long waits for long.
func (k *contest) run(i int, ready *sync.WaitGroup) {
	me, waits := &k.contestants[i], k.waits[i]
	asked := uint64(1)
	me.asked.Store(asked)
	ready.Done()
	k.lock.Lock()
	if k.Sample > 0 {
		waits.Add(time.Since(k.start))
	}
	untilTimed := k.Sample
	for {
		more := k.section(i, me)
		k.lock.Unlock()
		if !more {
			return
		}
		if k.outside > 0 {
			busy(k.outside)
		}

		var before time.Duration
		untilTimed-- // Never 0 if it started there.
		if untilTimed == 0 {
			before = time.Since(k.start)
		}
		// The very last thing before Lock. A contestant that loses its processor in between
		// counts as a waiter.
		if asked++; k.Streaks {
			me.asked.Store(asked)
		}
		k.lock.Lock()
		if untilTimed == 0 {
			waits.Add(time.Since(k.start) - before)
			untilTimed = k.Sample
		}
	}
}

// section has the steps of contestant i under the lock. It returns false when the contest is
// over.
func (k *contest) section(i int, me *contestant) bool {
	me.got++
	if k.left <= 0 || k.stop.Load() {
		return false
	}
	k.left--
	me.acquired++
	acquired := k.acquired
	if k.inside > 0 {
		busy(k.inside)
	}
	k.acquired = acquired + 1
	if k.Streaks {
		k.streaks.add(i, k.anyWaits())
	}
	return true
}

// anyWaits reports whether a goroutine waits for the lock. The caller holds it, and so does not
// wait itself.
func (k *contest) anyWaits() bool {
	// If many wait, the waiter that was found last still waits most of the time.
	at := k.hint
	for range k.contestants {
		if c := &k.contestants[at]; c.asked.Load() > c.got {
			k.hint = at
			return true
		}
		if at++; at == len(k.contestants) {
			at = 0
		}
	}
	return false
}

// streaks finds the longest streak in a sequence of acquisitions.
type streaks struct {
	last    int  // the contestant that had the lock last
	waited  bool // whether others waited when it was released
	length  int  // of the streak that goes on
	longest int
}

// add adds an acquisition by who, and whether others wait at its end. Acquiring the lock again
// adds to a streak only if it overtook a waiter.
func (s *streaks) add(who int, waiting bool) {
	if who == s.last && s.waited {
		s.length++
	} else {
		s.last, s.length = who, 1
	}
	s.waited = waiting
	s.longest = max(s.longest, s.length)
}

// Jain returns Jain's index of fairness: 1 if all shares are equal, 1/n if one of n has
// everything. No shares at all, or only empty shares, are equal.
func Jain(shares []int) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}

package bench

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// SteadySteps is the number of rounds of work in a section of a steady contest.
const SteadySteps = 300

// ReadWriter is a lock with a read side.
type ReadWriter interface {
	sync.Locker
	RLock()
	RUnlock()
}

// Steady is how a contest between steady readers and one steady writer went.
type Steady struct {
	// Elapsed is how long the contest took.
	Elapsed time.Duration
	// Writes and Reads are the numbers of sections.
	Writes, Reads int
	// Waits are the times that the writer waited for the lock.
	Waits Histogram
}

// ContendSteadily has readers and one writer acquire l in loops, each for [SteadySteps] rounds of
// work, and without any work outside. It ends after so many writes, or after the given time; 0 is
// no limit, and one of both is needed. It returns an error if a reader and the writer, or two
// writers, were inside at a time.
func ContendSteadily(l ReadWriter, readers, writes int, limit time.Duration) (Steady, error) {
	if readers < 0 || writes <= 0 && limit <= 0 {
		return Steady{}, fmt.Errorf("bench: steady contest of %d readers and %d writes in %v", readers, writes, limit)
	}
	type count struct {
		reads, torn int
		_           [112]byte
	}
	var (
		start  atomic.Bool
		stop   atomic.Bool
		counts = make([]count, readers)
		begun  sync.WaitGroup
		done   sync.WaitGroup
		a, b   atomic.Int64 // equal outside of a write
		s      Steady
	)
	begun.Add(readers)
	for i := range counts {
		done.Go(func() {
			var c count
			for first := true; !stop.Load(); first = false {
				l.RLock()
				before := a.Load()
				busy(SteadySteps)
				if before != b.Load() {
					c.torn++
				}
				l.RUnlock()
				if first {
					begun.Done()
				} else if start.Load() {
					c.reads++
				}
			}
			counts[i] = c
		})
	}
	done.Go(func() {
		begun.Wait() // else a short contest is over before a reader runs
		start.Store(true)
		begin := time.Now()
		if limit > 0 {
			defer time.AfterFunc(limit, func() { stop.Store(true) }).Stop()
		}
		for (writes <= 0 || s.Writes < writes) && !stop.Load() {
			asked := time.Now()
			l.Lock()
			s.Waits.Add(time.Since(asked))
			a.Add(1)
			busy(SteadySteps)
			b.Add(1)
			l.Unlock()
			s.Writes++
		}
		s.Elapsed = time.Since(begin)
		stop.Store(true)
	})
	done.Wait()
	for i := range counts {
		s.Reads += counts[i].reads
		if counts[i].torn > 0 {
			return s, fmt.Errorf("%w: %d reads saw half of a write", ErrExclusion, counts[i].torn)
		}
	}
	return s, nil
}

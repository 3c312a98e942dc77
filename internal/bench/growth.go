package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of the workloads that [Growth] returns.
var (
	goroutineSizes = []int{1, 4, 16, 64, 256, 1024}
	waiterSizes    = []int{1_000, 10_000, 100_000}
)

// Growth returns workloads in series. All of one series do the same at different sizes, the
// smallest first.
func Growth() (ws []Workload) {
	const work = 300 * time.Nanosecond
	add := func(series, of string, sizes []int, unit, about string, subject func(l Lock, size int) Subject) {
		for _, size := range sizes {
			w := Workload{
				Series: series, Size: size, Name: fmt.Sprintf("%s, %d %s", series, size, of), Unit: unit, About: about,
			}
			for _, l := range Locks() {
				if slices.Contains(grown, l.Name) {
					w.Subjects = append(w.Subjects, subject(l, size))
				}
			}
			ws = append(ws, w)
		}
	}
	contest := func(size, n int) Contest {
		// The first and the last acquisition of a goroutine differ from the others: it starts in
		// the queue, and it may wait once more to find that nothing is left.
		return Contest{Goroutines: size, Ops: max(n, 100*size), Inside: work, Outside: work}
	}
	add("processor time", "goroutines", goroutineSizes, ProcessorTime,
		"An acquisition with 300 ns inside and 300 ns outside.", func(l Lock, size int) Subject {
			return Cost(l.Name, func(n int) (float64, error) {
				return contendInProcessorTime(l.New(), contest(size, n))
			})
		})
	add("memory", "goroutines", goroutineSizes, Bytes,
		"What an acquisition allocates, with 300 ns inside and 300 ns outside.", func(l Lock, size int) Subject {
			return Cost(l.Name, func(n int) (float64, error) {
				c := contest(size, n)
				var before, after runtime.MemStats
				c.Begin = func() { runtime.ReadMemStats(&before) }
				c.End = func() { runtime.ReadMemStats(&after) }
				_, err := Contend(context.Background(), l.New(), c)
				return float64(after.TotalAlloc-before.TotalAlloc) / float64(c.Ops), err
			})
		})
	add("hand-over", "waiters", waiterSizes, ProcessorTime,
		"One acquisition of all waiters of a queue, one after the other.", func(l Lock, size int) Subject {
			return queued(l, size, func(q *queueOfWaiters) (float64, error) {
				return InProcessorTime(size, func() error { q.release(); return nil })
			})
		})
	add("waiting", "waiters", waiterSizes, Bytes,
		"What a goroutine that waits takes: its stack, and its place in the queue.", func(l Lock, size int) Subject {
			return queued(l, size, func(q *queueOfWaiters) (float64, error) {
				taken := memory() - q.before
				q.release()
				return float64(taken) / float64(size), nil
			})
		})
	return ws
}

// contendInProcessorTime returns the processor time of one acquisition in c. The start of the
// goroutines does not count: with 1,024 of them it would take most of the time of a short contest.
func contendInProcessorTime(l sync.Locker, c Contest) (float64, error) {
	var before, after time.Duration
	var known bool
	c.Begin = func() { before, known = processorTime() }
	c.End = func() { after, _ = processorTime() }
	_, err := Contend(context.Background(), l, c)
	if err == nil && !known {
		err = errUnknownTime
	}
	return float64(after-before) / float64(c.Ops), err
}

// grown are the locks that Growth compares.
var grown = []string{
	Reference, "chan", "semaphore.Weighted", "fair.Mutex", "fair.BargingMutex", "reentrant.Mutex", "spin.MCS",
}

// queueOfWaiters are goroutines that wait for one lock.
type queueOfWaiters struct {
	release func() // releases the lock, and returns when each goroutine has had it
	before  int64  // memory before there were any
}

// queued makes a subject of lots of so many waiters. measure releases them.
func queued(l Lock, waiters int, measure func(*queueOfWaiters) (float64, error)) Subject {
	return Cost(l.Name, func(n int) (total float64, err error) {
		lots := (n + waiters - 1) / waiters
		for range lots {
			cost, err := measure(queueUp(l.New(), waiters))
			if err != nil {
				return 0, err
			}
			total += cost / float64(lots)
		}
		return total, nil
	})
}

func queueUp(m sync.Locker, waiters int) *queueOfWaiters {
	q := &queueOfWaiters{before: memory()}
	m.Lock()
	var asked atomic.Int64
	var done sync.WaitGroup
	for range waiters {
		done.Go(func() {
			asked.Add(1)
			m.Lock()
			m.Unlock()
		})
	}
	for asked.Load() < int64(waiters) {
		time.Sleep(settle)
	}
	time.Sleep(5 * settle) // for the last of them to get from there into the queue
	q.release = func() {
		m.Unlock()
		done.Wait()
	}
	return q
}

// memory returns how many bytes the heap and the stacks take.
func memory() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

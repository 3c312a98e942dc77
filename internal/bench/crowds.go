package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/synchronizer"
)

// crowdWork is how long a goroutine of a crowd works inside of the lock, and outside.
const crowdWork = 300 * time.Nanosecond

// crowdSizes are the numbers of goroutines in a crowd.
var crowdSizes = []int{8, 64, 1024}

// crowds are many goroutines that take one lock which newcomers may take ahead of waiters. They
// measure the cost of an acquisition, and how long the goroutines wait.
func crowds() (ws []Workload) {
	overtaking := slices.DeleteFunc(Locks(), func(l Lock) bool { return l.FIFO })
	overtaking = append(overtaking, Lock{
		Name: "keyed.Mutex",
		New:  func() sync.Locker { return new(keyed.Mutexes[string]).Of("key") },
	}, Lock{
		Name: ruledNon,
		New:  func() sync.Locker { return byRules{synchronizer.New(mutexRules{}, 0, locks.NonFair)} },
	})
	for _, size := range crowdSizes {
		name := fmt.Sprintf("crowd of %s", thousands(size))
		about := fmt.Sprintf("%s goroutines, 300 ns inside and 300 ns outside", thousands(size))
		c := Contest{Goroutines: size, Inside: crowdWork, Outside: crowdWork}
		time := Workload{
			Name: name, Unit: Nanoseconds, About: about + ": an acquisition.",
			Targets: crowdTargets(1.1),
		}
		p999 := Workload{
			Name: name + ", p99.9 wait", Unit: Nanoseconds,
			About: about + ": 99.9 % of the waits are at most as long.", Targets: crowdTargets(1),
		}
		longest := Workload{
			Name: name + ", longest wait", Unit: Nanoseconds, About: about + ": the longest wait.",
			Targets: crowdTargets(1.2),
		}
		for _, l := range overtaking {
			time.Subjects = append(time.Subjects, Contended(l.Name, l.New, c))
			waits := func(of func(h *Histogram) float64) Subject {
				return Cost(l.Name, func(n int) (float64, error) {
					c := c
					c.Sample = 1
					c.Ops = 4 * max(n, fewest.each*size) // the longest wait takes its time to come
					r, err := Contend(context.Background(), l.New(), c)
					return of(&r.Waits), err
				})
			}
			p999.Subjects = append(p999.Subjects,
				waits(func(h *Histogram) float64 { return float64(h.Quantile(0.999)) }))
			longest.Subjects = append(longest.Subjects,
				waits(func(h *Histogram) float64 { return float64(h.Max()) }))
		}
		ws = append(ws, time, p999, longest)
	}
	return append(ws, readerCrowds()...)
}

// crowdTargets compares each lock of a crowd with the lock of package sync that it stands for.
func crowdTargets(ratio float64) []Target {
	return []Target{
		{"fair.BargingMutex", Reference, ratio}, {"reentrant.Mutex", Reference, ratio},
		{"spin.Mutex", Reference, ratio}, {"keyed.Mutex", Reference, ratio}, {ruledNon, Reference, ratio},
		{"rwlock.RWMutex", "sync.RWMutex", ratio}, {"rwlock.StampedLock", "sync.RWMutex", ratio},
	}
}

// thousands writes n with a comma.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// readerCrowds are many goroutines that read and, now and then, write.
func readerCrowds() (ws []Workload) {
	for _, c := range []readerCrowd{{8, 10}, {8, 100}, {64, 1}, {64, 10}, {64, 100}, {1024, 100}} {
		name := fmt.Sprintf("crowd of %s readers, %v %% writes", thousands(c.goroutines), float64(c.writes)/10)
		about := fmt.Sprintf("%s goroutines read, and write in %d of 1,000 operations, with 300 ns inside and outside",
			thousands(c.goroutines), c.writes)
		time := Workload{
			Name: name, Unit: Nanoseconds, About: about + ": an operation.",
			Targets: []Target{{"rwlock.RWMutex", "sync.RWMutex", 1}},
		}
		p99 := Workload{
			Name: name + ", p99 wait", Unit: Nanoseconds, About: about + ": the writers' p99 wait.",
			Targets: []Target{{"rwlock.RWMutex", "sync.RWMutex", 1}},
		}
		for _, l := range []struct {
			name string
			make func() ReadWriter
		}{
			{"sync.RWMutex", func() ReadWriter { return new(sync.RWMutex) }},
			{"rwlock.RWMutex", func() ReadWriter { return new(rwlock.RWMutex) }},
			{"rwlock.StampedLock", func() ReadWriter { return stampedSides{new(rwlock.StampedLock)} }},
			{"fair.RWMutex", func() ReadWriter { return new(fair.RWMutex) }},
		} {
			time.Subjects = append(time.Subjects, Cost(l.name, func(n int) (float64, error) {
				took, _, err := c.run(l.make(), n)
				return took, err
			}))
			p99.Subjects = append(p99.Subjects, Cost(l.name, func(n int) (float64, error) {
				_, waits, err := c.run(l.make(), 4*n)
				return float64(waits.Quantile(0.99)), err
			}))
		}
		ws = append(ws, time, p99)
	}
	return ws
}

// readerCrowd is a number of goroutines, of whose operations so many in 1,000 are writes.
type readerCrowd struct{ goroutines, writes int }

// run makes the crowd do n operations or more with l. It returns the cost of an operation, and the
// writers' waits.
func (c readerCrowd) run(l ReadWriter, n int) (took float64, waits *Histogram, err error) {
	var (
		torn  atomic.Bool
		left  atomic.Int64
		a, b  atomic.Int64 // equal outside of a write
		mu    sync.Mutex
		inUse = Rounds(crowdWork)
	)
	n = max(n, 2*fewest.each*c.goroutines)
	left.Store(int64(n))
	waits = new(Histogram)
	start := time.Now()
	share(c.goroutines, n, func(g, _ int) {
		mine := new(Histogram)
		const chunk = 16 // operations that a goroutine does before it takes more
		for op := 617 * g; left.Add(-chunk) >= 0; {
			for range chunk {
				if op = (op + 377) % 1000; op < c.writes { // each operation of 1,000 in turn, in no order
					asked := time.Now()
					l.Lock()
					mine.Add(time.Since(asked))
					a.Add(1)
					busy(inUse)
					b.Add(1)
					l.Unlock()
				} else {
					l.RLock()
					before := a.Load()
					busy(inUse)
					if before != b.Load() {
						torn.Store(true)
					}
					l.RUnlock()
				}
				busy(inUse)
			}
		}
		mu.Lock()
		waits.Merge(mine)
		mu.Unlock()
	})
	if torn.Load() {
		return 0, waits, ErrExclusion
	}
	return float64(time.Since(start)) / float64(n), waits, nil
}

// stampedSides is a StampedLock without stamps.
type stampedSides struct{ l *rwlock.StampedLock }

func (s stampedSides) Lock()    { s.l.WriteLock() }
func (s stampedSides) Unlock()  { s.l.TryUnlockWrite() }
func (s stampedSides) RLock()   { s.l.ReadLock() }
func (s stampedSides) RUnlock() { s.l.TryUnlockRead() }

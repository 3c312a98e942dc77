//lint:file-ignore SA2001 Locking and unlocking is all there is to measure.

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/singleton"
	"github.com/jucgo/locks/spin"
)

// Names of the workloads that have subjects of other modules as well.
const (
	Uncontended    = "uncontended"
	Reentry        = "re-entry"
	ReadPair       = "read"
	ReentrantRead  = "re-entrant read"
	TwoReaders     = "read, 2 goroutines"
	Turns          = "read and write in turns"
	Tries          = "TryLock"
	LiveContext    = "LockContext with a live ctx"
	LiveContext8   = "LockContext with a live ctx, 8 goroutines"
	OneKey         = "lock by key, 1 key"
	ManyKeys       = "lock by key, 1,000 keys"
	SharedKeys     = "lock by key, 8 goroutines"
	FewKeys        = "lock by key, 8 keys, 8 goroutines"
	HeapBytes      = "heap per used lock"
	Contended2     = "contended, 2 goroutines"
	FIFO8          = "contended FIFO, 8 goroutines"
	FIFO8Work      = "contended FIFO, 8 goroutines with work"
	Goroutines     = "64 goroutines with work"
	PingPong       = "condition ping-pong"
	Buffer         = "bounded buffer 4:4"
	SmallBuffer    = "bounded buffer 1:1"
	Broadcast10    = "broadcast to 10"
	Broadcast1000  = "broadcast to 1,000"
	CompareAndSwap = "compare-and-swap"
	Recorded       = "lock with times"
)

// Keys are the keys of the workloads by key.
var Keys = func() (keys [1000]string) {
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%d", i)
	}
	return keys
}()

// Workloads returns all workloads, with the subjects of this module, of the standard library, and
// of golang.org/x/sync. The first processor-bound loop of a subject is written out for its type,
// as in [Lock].
func Workloads() []Workload {
	return slices.Concat(
		uncontended(), reads(), mixes(), []Workload{
			steady(2, false), steady(2, true), steady(8, false), steady(8, true), tries(), liveContexts(),
		},
		contests(), crowds(), endedWaits(), semaphores(), conditionWaits(), byKey(),
		[]Workload{several(2), several(4), compareAndSwap(), recorded(), singletons(), heap()},
	)
}

// uncontended are locks that nobody else holds.
func uncontended() []Workload {
	first := Workload{
		Name: Uncontended, Unit: Nanoseconds, About: "Lock and Unlock of a free lock by one goroutine.",
		Targets: []Target{
			{"reentrant.Mutex", Reference, 1.6}, {"reentrant.Mutex", "textbook", 0.75},
			{"spin.MCS", Reference, 1.3},
		},
	}
	again := Workload{
		Name: Reentry, Unit: Nanoseconds, About: "Lock and Unlock by the goroutine that holds the lock.",
		Targets: []Target{{"reentrant.Mutex", "textbook", 1}},
	}
	for _, l := range Locks() {
		first.Subjects = append(first.Subjects, Loop(l.Name, l.Pairs))
		if l.Reentry != nil {
			again.Subjects = append(again.Subjects, Loop(l.Name, l.Reentry))
		}
	}
	first.Subjects = append(first.Subjects, Loop("textbook", textbook))
	again.Subjects = append(again.Subjects, Loop("textbook", textbookAgain))
	return []Workload{first, again}
}

func textbook() func(int) {
	m := new(Textbook)
	return func(n int) {
		for range n {
			m.Lock()
			m.Unlock()
		}
	}
}

func textbookAgain() func(int) {
	m := new(Textbook)
	return func(n int) {
		m.Lock()
		defer m.Unlock()
		for range n {
			m.Lock()
			m.Unlock()
		}
	}
}

// reads are reads without a writer, or with one in turns.
func reads() []Workload {
	one := Workload{
		Name: ReadPair, Unit: Nanoseconds, About: "RLock and RUnlock of a free lock by one goroutine.",
		Targets: []Target{
			{"rwlock.RWMutex.R", "sync.RWMutex.R", 1.8}, {"rwlock.StampedLock.R", "sync.RWMutex.R", 1.3},
			{"rwlock.StampedLock.Optimistic", "sync.RWMutex.R", 0.25},
		},
	}
	again := Workload{
		Name: ReentrantRead, Unit: Nanoseconds, About: "RLock and RUnlock by a goroutine that reads already.",
		Targets:  []Target{{"rwlock.RWMutex.R", "textbook", 1.3}},
		Subjects: []Subject{Loop("textbook", textbookAgain)},
	}
	two := Workload{
		Name: TwoReaders, Unit: Nanoseconds, About: "RLock and RUnlock by two goroutines at once, no writer.",
		Targets: []Target{{"rwlock.RWMutex.R", "sync.RWMutex.R", 0.68}},
	}
	turns := Workload{
		Name: Turns, Unit: Nanoseconds, About: "One goroutine reads and writes in turns.",
		Targets: []Target{{"rwlock.RWMutex.R", "sync.RWMutex.R", 2.5}},
	}
	for _, l := range RWLocks() {
		one.Subjects = append(one.Subjects, Loop(l.Name, l.Pairs))
		two.Subjects = append(two.Subjects, Parallel(l.Name, 2, l.Pairs))
		if l.Reentry != nil {
			again.Subjects = append(again.Subjects, Loop(l.Name, l.Reentry))
		}
		turns.Subjects = append(turns.Subjects, Loop(l.Name, func() func(int) {
			read, write := l.New()
			return func(n int) {
				for range n {
					read(1)
					write()
				}
			}
		}))
	}
	return []Workload{one, again, two, turns}
}

// mixes are reads with some writes.
func mixes() (ws []Workload) {
	for _, percent := range []int{1, 10, 50} {
		w := Workload{
			Name: fmt.Sprintf("reads with %d %% writes, 2 goroutines", percent), Unit: Nanoseconds,
			About:   fmt.Sprintf("Two goroutines read, and write in %d of 100 operations.", percent),
			Targets: []Target{{"rwlock.RWMutex.R", "sync.RWMutex.R", 1.3}},
		}
		for _, l := range RWLocks() {
			w.Subjects = append(w.Subjects, mix(l, percent))
		}
		ws = append(ws, w)
	}
	return ws
}

func tries() Workload {
	return Workload{
		Name: Tries, Unit: Nanoseconds, About: "TryLock and Unlock of a free lock.",
		Targets: []Target{
			{"rwlock.RWMutex", "semaphore.Weighted", 1.3}, {"reentrant.Mutex", "semaphore.Weighted", 1.2},
		},
		Subjects: []Subject{
			Loop("sync.Mutex", func() func(int) {
				m := new(sync.Mutex)
				return func(n int) {
					for range n {
						if m.TryLock() {
							m.Unlock()
						}
					}
				}
			}),
			Loop("semaphore.Weighted", func() func(int) {
				s := semaphore.NewWeighted(1)
				return func(n int) {
					for range n {
						if s.TryAcquire(1) {
							s.Release(1)
						}
					}
				}
			}),
			Loop("fair.Mutex", func() func(int) {
				m := new(fair.Mutex)
				return func(n int) {
					for range n {
						if m.TryLock() {
							m.Unlock()
						}
					}
				}
			}),
			Loop("reentrant.Mutex", func() func(int) {
				m := new(reentrant.Mutex)
				return func(n int) {
					for range n {
						if m.TryLock() {
							m.Unlock()
						}
					}
				}
			}),
			Loop("rwlock.RWMutex", func() func(int) {
				m := new(rwlock.RWMutex)
				return func(n int) {
					for range n {
						if m.TryLock() {
							m.Unlock()
						}
					}
				}
			}),
		},
	}
}

func liveContexts() Workload {
	return Workload{
		Name: LiveContext, Unit: Nanoseconds, About: "LockContext with a ctx that can end, and Unlock, of a free lock.",
		Targets: []Target{
			{"fair.Mutex", "fifomu.Mutex", 1.1}, {"fair.BargingMutex", "fifomu.Mutex", 1.1},
			{"reentrant.Mutex", "semaphore.Weighted", 1.1}, {"rwlock.RWMutex", "semaphore.Weighted", 1.5},
		},
		Subjects: []Subject{
			Loop("chan", func() func(int) {
				l := make(chanLock, 1)
				return func(n int) {
					for range n {
						_ = l.LockContext(live)
						l.Unlock()
					}
				}
			}),
			Loop("semaphore.Weighted", func() func(int) {
				s := semaphore.NewWeighted(1)
				return func(n int) {
					for range n {
						_ = s.Acquire(live, 1)
						s.Release(1)
					}
				}
			}),
			Loop("fair.Mutex", func() func(int) {
				m := new(fair.Mutex)
				return func(n int) {
					for range n {
						_ = m.LockContext(live)
						m.Unlock()
					}
				}
			}),
			Loop("fair.BargingMutex", func() func(int) {
				m := new(fair.BargingMutex)
				return func(n int) {
					for range n {
						_ = m.LockContext(live)
						m.Unlock()
					}
				}
			}),
			Loop("reentrant.Mutex", func() func(int) {
				m := new(reentrant.Mutex)
				return func(n int) {
					for range n {
						_ = m.LockContext(live)
						m.Unlock()
					}
				}
			}),
			Loop("rwlock.RWMutex", func() func(int) {
				m := new(rwlock.RWMutex)
				return func(n int) {
					for range n {
						_ = m.LockContext(live)
						m.Unlock()
					}
				}
			}),
		}}
}

// contests are goroutines that take one lock in loops.
func contests() []Workload {
	const work = 300 * time.Nanosecond
	ws := []Workload{
		{
			Name: Contended2, Unit: Nanoseconds, About: "Two goroutines, empty sections, nothing outside.",
			Targets: []Target{{"reentrant.Mutex", Reference, 1.2}, {"fair.BargingMutex", Reference, 1}},
		},
		{
			Name: FIFO8, Unit: Nanoseconds, About: "Eight goroutines, empty sections, locks that admit in order.",
			Targets: []Target{{"fair.Mutex", "chan", 1.2}},
		},
		{
			Name: FIFO8Work, Unit: Nanoseconds,
			About:   "Eight goroutines, 300 ns inside and 300 ns outside, locks that admit in order.",
			Targets: []Target{{"fair.Mutex", "chan", 1.05}},
		},
		{
			Name: Goroutines, Unit: Nanoseconds, About: "64 goroutines, 300 ns inside and 300 ns outside.",
			Targets: []Target{{"fair.BargingMutex", Reference, 0.8}, {"reentrant.Mutex", Reference, 0.8}},
		},
		{
			Name: "64 goroutines, p99 wait", Unit: Nanoseconds,
			About:   "The wait that 99 % of all time waiting is at most spent in, with 64 goroutines and work.",
			Targets: []Target{{"fair.Mutex", Reference, 0.25}, {"reentrant.Mutex", Reference, 1.3}},
		},
		{
			Name: "64 goroutines, longest wait", Unit: Nanoseconds,
			About:   "The longest of all waits, with 64 goroutines and work.",
			Targets: []Target{{"fair.BargingMutex", Reference, 1.3}},
		},
		{
			Name: "contended, 1,024 goroutines", Unit: Nanoseconds,
			About:   "1,024 goroutines, empty sections, nothing outside.",
			Targets: []Target{{"reentrant.Mutex", Reference, 1.3}},
		},
	}
	for i, c := range []Contest{
		{Goroutines: 2},
		{Goroutines: 8},
		{Goroutines: 8, Inside: work, Outside: work},
		{Goroutines: 64, Inside: work, Outside: work},
		{Goroutines: 64, Inside: work, Outside: work, Sample: 1},
		{Goroutines: 64, Inside: work, Outside: work, Sample: 1, Longest: true},
		{Goroutines: 1024},
	} {
		for _, l := range Locks() {
			if l.FIFO || !strings.Contains(ws[i].Name, "FIFO") {
				ws[i].Subjects = append(ws[i].Subjects, Contended(l.Name, l.New, c))
			}
		}
	}
	return append(ws, liveContests())
}

// liveContests are goroutines whose waits a context could end.
func liveContests() Workload {
	w := Workload{
		Name: LiveContext8, Unit: Nanoseconds,
		About:   "Eight goroutines, empty sections, waits that a context can end.",
		Targets: []Target{{"fair.Mutex", "fifomu.Mutex", 1.1}},
	}
	for _, k := range []struct {
		name string
		make func() ContextLocker
	}{
		{"chan", func() ContextLocker { return make(chanLock, 1) }},
		{"semaphore.Weighted", func() ContextLocker { return semaphoreLock{semaphore.NewWeighted(1)} }},
		{"fair.Mutex", func() ContextLocker { return new(fair.Mutex) }},
		{"reentrant.Mutex", func() ContextLocker { return new(reentrant.Mutex) }},
		{"reentrant.Mutex-FIFO", func() ContextLocker { return reentrant.New(locks.FIFO) }},
	} {
		w.Subjects = append(w.Subjects,
			Contended(k.name, func() sync.Locker { return LiveLocker{k.make()} }, Contest{Goroutines: 8}))
	}
	return w
}

// endedWaits are waits that end without the lock.
func endedWaits() []Workload {
	newReentrant := func() ContextLocker { return new(reentrant.Mutex) }
	newFair := func() ContextLocker { return new(fair.Mutex) }
	newChan := func() ContextLocker { return make(chanLock, 1) }
	newSemaphore := func() ContextLocker { return semaphoreLock{semaphore.NewWeighted(1)} }
	return []Workload{{
		Name: "cancelled wait, 1,024 waiters", Unit: ProcessorTime,
		About: "The end of a wait, when one cancellation ends 1,024.",
		Targets: []Target{
			{"fair.Mutex", "chan", 2}, {"reentrant.Mutex", "chan", 2},
			{"spin.MCS", "chan", 2}, {"spin.Ticket", "chan", 2},
		},
		Subjects: []Subject{
			CancelledWait("chan", newChan), CancelledWait("semaphore.Weighted", newSemaphore),
			CancelledWait("fair.Mutex", newFair), CancelledWait("reentrant.Mutex", newReentrant),
			CancelledWait("spin.MCS", func() ContextLocker { return new(spin.MCS) }),
			CancelledWait("spin.Ticket", func() ContextLocker { return new(spin.Ticket) }),
		},
	}, {
		Name: "time-out, 1,024 waiters", Unit: ProcessorTime,
		About:   "The end of a wait, when the time limits of 1,024 come at once.",
		Targets: []Target{{"fair.Mutex", "chan", 2}, {"reentrant.Mutex", "chan", 2}},
		Subjects: []Subject{
			TimedOutWait("chan", func() TimedLocker { return make(chanLock, 1) }),
			TimedOutWait("fair.Mutex", func() TimedLocker { return new(fair.Mutex) }),
			TimedOutWait("reentrant.Mutex", func() TimedLocker { return new(reentrant.Mutex) }),
		},
	}, {
		Name: "cancelled wait, 1,024 contexts", Unit: ProcessorTime,
		About: "The end of a wait, when 1,024 contexts are cancelled one after the other.",
		Targets: []Target{
			{"fair.Mutex", "semaphore.Weighted", 1.3}, {"reentrant.Mutex", "semaphore.Weighted", 1.3},
			{"spin.MCS", "semaphore.Weighted", 1.3},
		},
		Subjects: []Subject{
			CancelledWaits("chan", newChan), CancelledWaits("semaphore.Weighted", newSemaphore),
			CancelledWaits("fair.Mutex", newFair), CancelledWaits("reentrant.Mutex", newReentrant),
			CancelledWaits("spin.MCS", func() ContextLocker { return new(spin.MCS) }),
		},
	}}
}

// conditionWaits are two protocols with two conditions each.
func conditionWaits() []Workload {
	buffers := []Workload{
		{Name: SmallBuffer, About: "An item through a buffer of 16, with one producer and one consumer."},
		{Name: Buffer, About: "An item through a buffer of 16, with four producers and four consumers."},
	}
	for i := range buffers {
		buffers[i].Unit = ProcessorTime
		buffers[i].Targets = []Target{
			{"fair.Mutex", "sync.Cond", 2.5}, {"fair.BargingMutex", "sync.Cond", 1.2},
			{"reentrant.Mutex", "sync.Cond", 1.3},
		}
	}
	pingPong := Workload{
		Name: PingPong, Unit: Nanoseconds,
		About: "A round trip between two goroutines that signal each other.",
		Targets: []Target{
			{"fair.Mutex", "sync.Cond", 1.3}, {"fair.BargingMutex", "sync.Cond", 1.3},
			{"reentrant.Mutex", "sync.Cond", 1.3},
		},
		Subjects: []Subject{Loop("chan", func() func(int) {
			return func(n int) {
				turns := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
				turns[0] <- struct{}{}
				share(2, 2*n, func(g, _ int) {
					for range n {
						<-turns[g]
						turns[1-g] <- struct{}{}
					}
				})
			}
		})},
	}
	broadcasts := []Workload{
		{Name: Broadcast10, About: "A wait that a broadcast to 10 ends."},
		{Name: Broadcast1000, About: "A wait that a broadcast to 1,000 ends."},
	}
	for i := range broadcasts {
		broadcasts[i].Unit = ProcessorTime
		broadcasts[i].Targets = []Target{
			{"fair.Mutex", "sync.Cond", 1.15}, {"fair.BargingMutex", "sync.Cond", 1.15},
			{"reentrant.Mutex", "sync.Cond", 1.15},
		}
	}
	for _, c := range []struct {
		name string
		make func() Conditions
	}{
		{"sync.Cond", func() Conditions {
			l := new(sync.Mutex)
			return Conditions{l, func() Signaller { return sync.NewCond(l) }}
		}},
		{"fair.Mutex", func() Conditions { return conditions(new(fair.Mutex)) }},
		{"fair.BargingMutex", func() Conditions { return conditions(new(fair.BargingMutex)) }},
		{"reentrant.Mutex", func() Conditions { return conditions(new(reentrant.Mutex)) }},
	} {
		buffers[0].Subjects = append(buffers[0].Subjects, BoundedBuffer(1, c.name, c.make))
		buffers[1].Subjects = append(buffers[1].Subjects, BoundedBuffer(4, c.name, c.make))
		pingPong.Subjects = append(pingPong.Subjects, ConditionPingPong(c.name, c.make))
		broadcasts[0].Subjects = append(broadcasts[0].Subjects, BroadcastTo(10, c.name, c.make))
		broadcasts[1].Subjects = append(broadcasts[1].Subjects, BroadcastTo(1000, c.name, c.make))
	}
	return slices.Concat(buffers, []Workload{pingPong}, broadcasts)
}

// byKey are locks that are looked up by a key for each acquisition.
func byKey() []Workload {
	targets := []Target{{"keyed.Mutexes", "moby/locker", 1.2}, {"keyed.Mutexes", "map with counts", 1.2}}
	ws := []Workload{
		{Name: OneKey, About: "Lock and Unlock of one key, looked up each time."},
		{Name: ManyKeys, About: "Lock and Unlock of 1,000 keys, one after the other."},
		{Name: SharedKeys, About: "Eight goroutines lock and unlock 1,000 keys."},
		{Name: FewKeys, About: "Eight goroutines lock and unlock 8 keys."},
	}
	for i := range ws {
		ws[i].Unit, ws[i].Targets = Nanoseconds, targets
	}
	ws[3].Targets = append(targets, Target{"keyed.Mutexes", "sync.Map", 1.3})
	set, counts, forever := new(keyed.Mutexes[string]), new(CountedMap[string]), new(sync.Map)
	for _, s := range []struct {
		name         string
		lock, unlock func(string)
	}{
		{"keyed.Mutexes", func(k string) { set.Of(k).Lock() }, func(k string) { set.Of(k).Unlock() }},
		{"map with counts", counts.Lock, counts.Unlock},
		{"sync.Map", func(k string) {
			l, ok := forever.Load(k)
			if !ok {
				l, _ = forever.LoadOrStore(k, new(sync.Mutex))
			}
			l.(*sync.Mutex).Lock()
		}, func(k string) {
			l, _ := forever.Load(k)
			l.(*sync.Mutex).Unlock()
		}},
	} {
		for i, subject := range KeySubjects(s.name, s.lock, s.unlock) {
			ws[i].Subjects = append(ws[i].Subjects, subject)
		}
	}
	return ws
}

// keyLoops returns a loop over one key, over all, and over eight.
func keyLoops(lock, unlock func(key string)) [3]func() func(int) {
	over := func(keys []string) func() func(int) {
		return func() func(int) {
			return func(n int) {
				at := rand.IntN(len(keys))
				for range n {
					if at++; at == len(keys) {
						at = 0
					}
					lock(keys[at])
					unlock(keys[at])
				}
			}
		}
	}
	one := func() func(int) {
		return func(n int) {
			for range n {
				lock(Keys[0])
				unlock(Keys[0])
			}
		}
	}
	return [...]func() func(int){one, over(Keys[:]), over(Keys[:8])}
}

// several are all members of a Multi, or the same locks one by one.
func several(members int) Workload {
	background := context.Background()
	make := func() (ls []locks.TryLocker) {
		for range members {
			ls = append(ls, new(fair.Mutex))
		}
		return ls
	}
	return Workload{
		Name: fmt.Sprintf("Multi of %d", members), Unit: Nanoseconds,
		About:   "LockContext and UnlockContext of several locks at once.",
		Targets: []Target{{"locks.Multi", "one by one", 1.3}},
		Subjects: []Subject{
			Loop("one by one", func() func(int) {
				ls := make()
				return func(n int) {
					for range n {
						for _, l := range ls {
							_ = l.LockContext(background)
						}
						for _, l := range ls {
							_ = l.UnlockContext(background)
						}
					}
				}
			}),
			Loop("locks.Multi", func() func(int) {
				l := locks.Multi(make()...)
				return func(n int) {
					for range n {
						_ = l.LockContext(background)
						_ = l.UnlockContext(background)
					}
				}
			}),
		},
	}
}

func compareAndSwap() Workload {
	type pair struct {
		ref   *int
		stamp uint64
	}
	return Workload{
		Name: CompareAndSwap, Unit: Nanoseconds, About: "A load, and a compare-and-swap that succeeds.",
		Targets: []Target{{"cas.Packed", "raw", 1.2}, {"cas.Stamped", "pointer", 1.2}},
		Subjects: []Subject{
			Loop("raw", func() func(int) {
				w := new(atomic.Uint64)
				return func(n int) {
					for range n {
						old := w.Load()
						w.CompareAndSwap(old, old+1)
					}
				}
			}),
			Loop("cas.Packed", func() func(int) {
				p := new(cas.Packed)
				return func(n int) {
					for range n {
						value, stamp := p.Load()
						p.CompareAndSwap(value, value+1, stamp, stamp+1)
					}
				}
			}),
			Loop("pointer", func() func(int) {
				p := new(atomic.Pointer[pair])
				p.Store(&pair{ref: new(int)})
				return func(n int) {
					for range n {
						old := p.Load()
						p.CompareAndSwap(old, &pair{old.ref, old.stamp + 1})
					}
				}
			}),
			Loop("cas.Stamped", func() func(int) {
				s := cas.NewStamped(new(int), 0)
				return func(n int) {
					for range n {
						ref, stamp := s.Load()
						s.CompareAndSwap(ref, ref, stamp, stamp+1)
					}
				}
			}),
		},
	}
}

// recorded are locks that count and time what is done with them.
func recorded() Workload {
	return Workload{
		Name: Recorded, Unit: Nanoseconds, About: "Lock and Unlock of a free lock that times its waits and holds.",
		Targets: []Target{{"locks/record", "timed by hand", 3.5}},
		Subjects: []Subject{
			Loop("timed by hand", func() func(int) {
				m := new(Timed)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			}),
			Loop("locks/record", func() func(int) {
				m := record.New(record.Options{}).Wrap("l", new(reentrant.Mutex)).(sync.Locker)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			}),
		},
	}
}

func singletons() Workload {
	return Workload{
		Name: "singleton", Unit: Nanoseconds, About: "The value of a constructor that has run.",
		Targets: []Target{{"singleton.Lazy", "sync.OnceValue", 0.6}},
		Subjects: []Subject{
			Loop("sync.OnceValue", func() func(int) {
				return func(n int) {
					for range n {
						Sink += onceValue()
					}
				}
			}),
			Loop("singleton.Lazy", func() func(int) {
				return func(n int) {
					for range n {
						v, _ := lazyValue.Get()
						Sink += v
					}
				}
			}),
		},
	}
}

func heap() Workload {
	return Workload{
		Name: HeapBytes, Unit: Bytes, About: "The heap that a lock takes after it was used once.",
		Targets: []Target{{"reentrant.Mutex", "fifomu.Mutex", 1}, {"rwlock.StampedLock", "fifomu.Mutex", 1.5}},
		Subjects: []Subject{
			BytesOf("sync.Mutex", func() any { return used(new(sync.Mutex)) }),
			BytesOf("sync.RWMutex", func() any { return used(new(sync.RWMutex)) }),
			BytesOf("semaphore.Weighted", func() any { return used(semaphoreLock{semaphore.NewWeighted(1)}).s }),
			BytesOf("textbook", func() any { return used(new(Textbook)) }),
			BytesOf("fair.Mutex", func() any { return used(new(fair.Mutex)) }),
			BytesOf("fair.BargingMutex", func() any { return used(new(fair.BargingMutex)) }),
			BytesOf("reentrant.Mutex", func() any { return used(new(reentrant.Mutex)) }),
			BytesOf("rwlock.RWMutex", func() any { return used(new(rwlock.RWMutex)) }),
			BytesOf("rwlock.StampedLock", func() any {
				l := new(rwlock.StampedLock)
				l.UnlockWrite(l.WriteLock())
				l.UnlockRead(l.ReadLock())
				return l
			}),
		},
	}
}

// live can end, but never does.
var live, _ = context.WithCancel(context.Background())

// The functions that the loops over singletons call. They are package variables, as singletons
// are: the compiler would see through a local variable, and call nothing.
var (
	lazyValue = singleton.New(func() (int, error) { return 42, nil })
	onceValue = sync.OnceValue(func() int { return 42 })
)

// Sink takes what the loops compute, so that the compiler leaves nothing out.
var Sink int

func used[L sync.Locker](l L) L {
	l.Lock()
	l.Unlock()
	return l
}

func conditions(l interface {
	sync.Locker
	NewCond() *condition.Cond
}) Conditions {
	return Conditions{l, func() Signaller { return l.NewCond() }}
}

// KeySubjects makes the subjects of [OneKey], [ManyKeys], [SharedKeys] and [FewKeys].
func KeySubjects(name string, lock, unlock func(key string)) [4]Subject {
	loops := keyLoops(lock, unlock)
	return [...]Subject{
		Loop(name, loops[0]), Loop(name, loops[1]), Parallel(name, 8, loops[1]), Parallel(name, 8, loops[2]),
	}
}

// fewest are the least operations of each goroutine, and the least time, of a contest, even if the
// contest is measured only once. A writer that loses its processor gets it back after 10 ms.
var fewest = struct {
	each  int
	limit time.Duration
}{10, 50 * time.Millisecond}

// Contended makes a subject of a contest for one lock. The cost is the time of an acquisition. If
// waits are timed, it is the p99 wait, weighed by time, or the longest one.
func Contended(name string, make func() sync.Locker, c Contest) Subject {
	return Cost(name, func(n int) (float64, error) {
		c := c
		c.Ops = max(n, fewest.each*c.Goroutines)
		r, err := Contend(context.Background(), make(), c)
		if c.Longest {
			return float64(r.Waits.Max()), err
		}
		if c.Sample > 0 {
			return float64(r.Waits.QuantileByTime(0.99)), err
		}
		return r.PerOp(), err
	})
}

// mix is reads with some writes by two goroutines.
func mix(l RWLock, percent int) Subject {
	const chunk = 100
	return Subject{Name: l.Name, New: func() func(int) (float64, error) {
		read, write := l.New()
		return func(n int) (float64, error) {
			var torn atomic.Bool
			start := time.Now()
			share(2, n, func(_, n int) {
				// Which operations of a chunk write: drawn once, since drawing takes longer than
				// reading.
				var writes [chunk]bool
				for _, i := range rand.Perm(chunk)[:percent] {
					writes[i] = true
				}
				for i := range n {
					if writes[i%chunk] {
						write()
					} else if read(1) != 0 {
						torn.Store(true)
					}
				}
			})
			if torn.Load() {
				return 0, ErrExclusion
			}
			return float64(time.Since(start)) / float64(n), nil
		}
	}}
}

// steady is one writer among steady readers: the time of a write, or the p99 wait of the writer.
func steady(readers int, wait bool) Workload {
	w := Workload{
		Name: fmt.Sprintf("steady writer, %d readers", readers), Unit: Nanoseconds,
		About:   "A write of 300 steps, among readers of 300 steps, all in loops.",
		Targets: []Target{{"rwlock.RWMutex", "sync.RWMutex", 2}},
	}
	if wait {
		w.Name += ", p99 wait"
		w.About = "The writer's p99 wait, with sections of 300 steps, all in loops."
	}
	for _, l := range []struct {
		name string
		make func() ReadWriter
	}{
		{"sync.RWMutex", func() ReadWriter { return new(sync.RWMutex) }},
		{"rwlock.RWMutex", func() ReadWriter { return new(rwlock.RWMutex) }},
		{"rwlock.RWMutex-FIFO", func() ReadWriter { return rwlock.New(locks.FIFO) }},
	} {
		w.Subjects = append(w.Subjects, Cost(l.name, func(n int) (float64, error) {
			limit := max(fewest.limit, time.Duration(n)*time.Microsecond)
			s, err := ContendSteadily(l.make(), readers, 0, limit)
			if wait {
				return float64(s.Waits.Quantile(0.99)), err
			}
			return float64(s.Elapsed) / float64(max(s.Writes, 1)), err
		}))
	}
	return w
}

package bench

import (
	"context"
	"fmt"
	"sync"

	xsync "golang.org/x/sync/semaphore"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/synchronizer"
)

// weighted is a semaphore: ours or the semaphore of x/sync.
type weighted interface {
	Acquire(ctx context.Context, n int64) error
	Release(n int64)
}

// permit is a semaphore of one permit as a lock.
type permit struct{ s weighted }

func (p permit) Lock()                                   { _ = p.s.Acquire(context.Background(), 1) }
func (p permit) Unlock()                                 { p.s.Release(1) }
func (p permit) LockContext(ctx context.Context) error   { return p.s.Acquire(ctx, 1) }
func (p permit) UnlockContext(ctx context.Context) error { p.s.Release(1); return nil }

// mutexRules are the rules of a lock: the word is 1 while it is held.
type mutexRules struct{}

func (mutexRules) Acquire(w, _ uint64) (uint64, bool) { return 1, w == 0 }
func (mutexRules) Release(w, _ uint64) (uint64, bool) { return 0, w == 1 }

// byRules is a lock of rules.
type byRules struct {
	s *synchronizer.Sync[mutexRules]
}

func (r byRules) Lock()                                 { r.s.Acquire(1) }
func (r byRules) Unlock()                               { r.s.Release(1) }
func (r byRules) LockContext(ctx context.Context) error { return r.s.AcquireContext(ctx, 1) }
func (r byRules) UnlockContext(context.Context) error   { r.s.Release(1); return nil }

// The subjects of the workloads of semaphores.
const (
	ofXSync  = "semaphore.Weighted"
	ofLocks  = "locks/semaphore.Weighted"
	ruledBy  = "synchronizer.Sync-FIFO"
	ruledNon = "synchronizer.Sync"
)

// semaphores compares semaphore.Weighted with the Weighted of x/sync, and with a lock of rules.
func semaphores() []Workload {
	kinds := []struct {
		name string
		lock func() permitted
	}{
		{ofXSync, func() permitted { return permit{xsync.NewWeighted(1)} }},
		{ofLocks, func() permitted { return permit{semaphore.NewWeighted(1)} }},
		{ruledBy, func() permitted { return byRules{synchronizer.New(mutexRules{}, 0, locks.FIFO)} }},
		{ruledNon, func() permitted { return byRules{synchronizer.New(mutexRules{}, 0, locks.NonFair)} }},
	}
	target := func(ratio float64) []Target { return []Target{{ofLocks, ofXSync, ratio}} }
	free := Workload{
		Name: "semaphore, uncontended", Unit: Nanoseconds,
		About:   "Acquire and Release of one of four free permits.",
		Targets: target(0.85),
		Subjects: []Subject{
			Loop(ofXSync, func() func(int) {
				s, ctx := xsync.NewWeighted(4), context.Background()
				return func(n int) {
					for range n {
						_ = s.Acquire(ctx, 1)
						s.Release(1)
					}
				}
			}),
			Loop(ofLocks, func() func(int) {
				s, ctx := semaphore.NewWeighted(4), context.Background()
				return func(n int) {
					for range n {
						_ = s.Acquire(ctx, 1)
						s.Release(1)
					}
				}
			}),
			Loop(ruledBy, func() func(int) {
				s := synchronizer.New(mutexRules{}, 0, locks.FIFO)
				return func(n int) {
					for range n {
						s.Acquire(1)
						s.Release(1)
					}
				}
			}),
		},
	}
	ws := []Workload{free}
	for _, c := range []struct {
		goroutines int
		ratio      float64
	}{{2, 0.5}, {8, 1}, {64, 1}, {1024, 1}} {
		w := Workload{
			Name: fmt.Sprintf("semaphore, %d goroutines", c.goroutines), Unit: Nanoseconds,
			About:   "Acquire and Release of the only permit, with nothing in between.",
			Targets: target(c.ratio),
		}
		for _, k := range kinds {
			w.Subjects = append(w.Subjects, Contended(k.name, func() sync.Locker { return k.lock() },
				Contest{Goroutines: c.goroutines}))
		}
		ws = append(ws, w)
	}
	handOver := Workload{
		Name: "semaphore, hand-over, 1,024 waiters", Unit: ProcessorTime,
		About:   "One acquisition of all waiters of a queue, one after the other.",
		Targets: target(1),
	}
	ended := Workload{
		Name: "semaphore, cancelled wait, 1,024 waiters", Unit: ProcessorTime,
		About:   "The end of a wait, when one cancellation ends 1,024.",
		Targets: target(1),
	}
	for _, k := range kinds {
		ended.Subjects = append(ended.Subjects, CancelledWait(k.name, func() ContextLocker { return k.lock() }))
		l := Lock{Name: k.name, New: func() sync.Locker { return k.lock() }}
		handOver.Subjects = append(handOver.Subjects, queued(l, Waiters, func(q *queueOfWaiters) (float64, error) {
			return InProcessorTime(Waiters, func() error { q.release(); return nil })
		}))
	}
	return append(ws, handOver, ended)
}

// permitted is a lock in both families.
type permitted interface {
	sync.Locker
	ContextLocker
}

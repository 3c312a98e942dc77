package bench_test

import (
	"sync"
	"testing"

	"github.com/petermattis/goid"

	"github.com/jucgo/locks/internal/bench"
)

// BenchmarkFloor measures the cost of a promise itself: the least locks with a promise of this
// module, by public means, beside the locks of the module and others. The floor of a re-entry is
// the lock called textbook in bench/compare.
func BenchmarkFloor(b *testing.B) {
	least := func(barges bool) func() bench.Conditions {
		return func() bench.Conditions {
			l := &queueLock{barges: barges}
			return bench.Conditions{Locker: l, NewCond: func() bench.Signaller { return &queueCond{l: l} }}
		}
	}
	floors := map[string][]bench.Subject{
		bench.PingPong: {
			bench.ConditionPingPong("least", least(false)), bench.ConditionPingPong("least-barging", least(true)),
		},
		bench.Broadcast10:   {bench.BroadcastTo(10, "least", least(false))},
		bench.Broadcast1000: {bench.BroadcastTo(1000, "least", least(false))},
		bench.SmallBuffer: {
			bench.BoundedBuffer(1, "least", least(false)), bench.BoundedBuffer(1, "least-barging", least(true)),
		},
		bench.Buffer: {
			bench.BoundedBuffer(4, "least", least(false)), bench.BoundedBuffer(4, "least-barging", least(true)),
		},
		bench.ReadPair: {bench.Loop("least", func() func(int) {
			l := new(namedReaders)
			return func(n int) {
				for range n {
					l.RLock()
					l.RUnlock()
				}
			}
		})},
	}
	for _, w := range bench.Workloads() {
		if floors[w.Name] == nil {
			continue
		}
		for _, s := range append(floors[w.Name], w.Subjects...) {
			b.Run(w.Name+"/"+s.Name, func(b *testing.B) {
				run := s.New()
				b.ResetTimer()
				cost, err := run(b.N)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(cost, w.Unit+"/op")
			})
		}
	}
}

// queueCond is the least condition of a queueLock. A signalled waiter moves to the lock's queue.
// It returns when it has the lock.
type queueCond struct {
	l *queueLock
	nodeQueue
}

func (c *queueCond) Wait() {
	n := c.l.nodes().Get().(*queueNode)
	c.push(n)
	c.l.Unlock()
	c.l.await(n)
}

// Signal is called by the holder.
func (c *queueCond) Signal() {
	if n := c.pop(); n != nil {
		c.l.mu.Lock()
		c.l.push(n)
		c.l.mu.Unlock()
	}
}

// Broadcast is called by the holder.
func (c *queueCond) Broadcast() {
	for c.head != nil {
		c.Signal()
	}
}

// namedReaders is a sync.RWMutex that looks up which goroutine asks, as a lock that knows its
// readers has to.
type namedReaders struct{ sync.RWMutex }

func (l *namedReaders) RLock() {
	if goid.Get() == 0 {
		panic("no goroutine")
	}
	l.RWMutex.RLock()
}

func (l *namedReaders) RUnlock() {
	if goid.Get() == 0 {
		panic("no goroutine")
	}
	l.RWMutex.RUnlock()
}

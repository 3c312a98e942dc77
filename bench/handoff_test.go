package bench_test

import (
	"sync"
	"testing"

	"github.com/jucgo/locks/internal/bench"
)

// BenchmarkHandOff goes from a channel to the FIFO locks of this module in steps, to show what each
// part of a hand-off costs. Eight goroutines do nothing but lock and unlock, so each acquisition is
// a hand-off. Run it with -cpu 1: then no step is faster only because goroutines move to another
// processor less often.
func BenchmarkHandOff(b *testing.B) {
	steps := []bench.Lock{
		{Name: "sync.Cond", New: func() sync.Locker { return newCondLock() }},
		{Name: "queue", New: func() sync.Locker { return new(queueLock) }},
	}
	for _, l := range bench.Locks() {
		switch l.Name {
		case "chan", "fair.Mutex", "reentrant.Mutex-FIFO":
			steps = append(steps, l)
		}
	}
	for _, l := range steps {
		b.Run(l.Name, func(b *testing.B) {
			r, err := bench.Contend(b.Context(), l.New(), bench.Contest{Goroutines: 8, Ops: b.N})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(r.PerOp(), "ns/op")
		})
	}
}

// condLock is the least FIFO lock of a mutex and a sync.Cond. Its queue is the Cond's, so no waiter
// can leave it early, and nobody can look at it.
type condLock struct {
	mu      sync.Mutex
	turn    sync.Cond
	held    bool
	waiters int
}

func newCondLock() *condLock {
	l := new(condLock)
	l.turn.L = &l.mu
	return l
}

func (l *condLock) Lock() {
	l.mu.Lock()
	if l.held {
		l.waiters++
		l.turn.Wait() // ends with the lock
	}
	l.held = true
	l.mu.Unlock()
}

func (l *condLock) Unlock() {
	l.mu.Lock()
	if l.waiters > 0 {
		l.waiters--
		l.mu.Unlock()
		l.turn.Signal()
		return
	}
	l.held = false
	l.mu.Unlock()
}

// queueLock is the least FIFO lock with a queue of its own, in which a waiter is a node with a
// sync.Cond. The nodes are used again.
type queueLock struct {
	mu         sync.Mutex
	held       bool
	head, tail *queueNode
}

type queueNode struct {
	next  *queueNode
	mu    sync.Mutex
	cond  sync.Cond
	woken bool
}

var queueNodes = sync.Pool{New: func() any {
	n := new(queueNode)
	n.cond.L = &n.mu
	return n
}}

func (l *queueLock) Lock() {
	l.mu.Lock()
	if !l.held {
		l.held = true
		l.mu.Unlock()
		return
	}
	n := queueNodes.Get().(*queueNode)
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	l.mu.Unlock()

	n.mu.Lock()
	for !n.woken {
		n.cond.Wait()
	}
	n.mu.Unlock()
	n.next, n.woken = nil, false
	queueNodes.Put(n)
}

func (l *queueLock) Unlock() {
	l.mu.Lock()
	n := l.head
	if n == nil {
		l.held = false
		l.mu.Unlock()
		return
	}
	if l.head = n.next; l.head == nil {
		l.tail = nil
	}
	l.mu.Unlock()
	n.mu.Lock()
	n.woken = true
	n.mu.Unlock()
	n.cond.Signal()
}

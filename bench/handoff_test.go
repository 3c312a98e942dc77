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

// queueLock is the least lock with a queue of its own, in which a waiter is a node with a
// sync.Cond. The nodes are used again. It is FIFO, unless it barges: then a release frees the lock,
// and wakes the first waiter, which races for it.
type queueLock struct {
	barges bool
	mu     sync.Mutex
	held   bool
	nodeQueue
}

type nodeQueue struct{ head, tail *queueNode }

func (q *nodeQueue) push(n *queueNode) {
	if q.tail == nil {
		q.head = n
	} else {
		q.tail.next = n
	}
	q.tail = n
}

func (q *nodeQueue) pop() *queueNode {
	n := q.head
	if n == nil {
		return nil
	}
	if q.head = n.next; q.head == nil {
		q.tail = nil
	}
	n.next = nil
	return n
}

type queueNode struct {
	next  *queueNode
	mu    sync.Mutex
	cond  sync.Cond
	woken bool
}

// A node of a barging lock may come with a wake-up of its last wait, which a FIFO lock would take
// for the lock. So each kind has nodes of its own.
var fifoNodes, bargingNodes = sync.Pool{New: newQueueNode}, sync.Pool{New: newQueueNode}

func newQueueNode() any {
	n := new(queueNode)
	n.cond.L = &n.mu
	return n
}

func (l *queueLock) nodes() *sync.Pool {
	if l.barges {
		return &bargingNodes
	}
	return &fifoNodes
}

// park waits for wake.
func (n *queueNode) park() {
	n.mu.Lock()
	for !n.woken {
		n.cond.Wait()
	}
	n.woken = false
	n.mu.Unlock()
}

func (n *queueNode) wake() {
	n.mu.Lock()
	n.woken = true
	n.mu.Unlock()
	n.cond.Signal()
}

func (l *queueLock) Lock() {
	l.mu.Lock()
	if !l.held {
		l.held = true
		l.mu.Unlock()
		return
	}
	n := l.nodes().Get().(*queueNode)
	l.push(n)
	l.mu.Unlock()
	l.await(n)
}

// await returns when n, which is in the queue, has the lock, and gives n back.
func (l *queueLock) await(n *queueNode) {
	for n.park(); l.barges; n.park() {
		l.mu.Lock()
		if !l.held && l.head == n { // the wake-up may be of the node's last wait
			l.held = true
			l.pop()
			l.mu.Unlock()
			break
		}
		l.mu.Unlock()
	}
	l.nodes().Put(n)
}

func (l *queueLock) Unlock() {
	l.mu.Lock()
	n := l.head
	if l.held = n != nil && !l.barges; l.held {
		l.pop()
	}
	l.mu.Unlock()
	if n != nil {
		n.wake()
	}
}

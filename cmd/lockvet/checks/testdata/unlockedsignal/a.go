package unlockedsignal

import (
	"sync"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
)

type queue struct {
	mu       fair.Mutex
	notEmpty *condition.Cond
	plain    sync.Mutex
	cond     *sync.Cond
	other    *condition.Cond
	n        int
}

func newQueue() *queue {
	q := &queue{}
	q.notEmpty = q.mu.NewCond()
	q.cond = sync.NewCond(&q.plain)
	q.other = condition.New(&q.plain)
	return q
}

func (q *queue) put() {
	q.mu.Lock()
	q.n++
	q.mu.Unlock()
	q.notEmpty.Signal() // want `Signal of q.notEmpty after q.mu was unlocked, which panics or fails: signal first`
}

func (q *queue) putPlain() {
	q.plain.Lock()
	q.n++
	q.plain.Unlock()
	q.other.Broadcast() // want `Broadcast of q.other after q.plain was unlocked`
}

func variables() {
	var mu fair.Mutex
	c := mu.NewCond()
	mu.Lock()
	mu.Unlock()
	c.Signal() // want `Signal of c after mu was unlocked`
}

// What follows is right.

func (q *queue) right() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n++
	q.notEmpty.Signal()
}

func (q *queue) ofSync() {
	q.plain.Lock()
	q.n++
	q.plain.Unlock()
	q.cond.Signal()
}

func (q *queue) signal() { q.notEmpty.Signal() }

func (q *queue) sometimes(x bool) {
	q.mu.Lock()
	if x {
		q.mu.Unlock()
	}
	q.notEmpty.Signal()
	if !x {
		q.mu.Unlock()
	}
}

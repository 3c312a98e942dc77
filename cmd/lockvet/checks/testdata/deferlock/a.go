package deferlock

import (
	"context"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
)

type queue struct {
	mu sync.Mutex
	rw fair.RWMutex
	n  int
}

func (q *queue) write() {
	q.mu.Lock()
	defer q.mu.Lock() // want `deferred Lock of q.mu, which is held already: Unlock is meant`
	q.n++
}

func (q *queue) read() int {
	q.rw.RLock()
	defer q.rw.RLock() // want `deferred RLock of q.rw, which is held already: RUnlock is meant`
	return q.n
}

func context_(ctx context.Context, l locks.Locker) error {
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	defer l.LockContext(ctx) // want `deferred LockContext of l, which is held already: UnlockContext is meant`
	return nil
}

func (q *queue) lock() func() {
	q.mu.Lock()
	return q.mu.Unlock
}

func (q *queue) locked() func() {
	q.rw.Lock()
	return func() {
		q.rw.Unlock()
	}
}

func (q *queue) calls() {
	defer q.lock()   // want `deferred q.lock\(\) returns the Unlock of q.mu, which nothing calls: q.lock\(\)\(\) is meant`
	defer q.locked() // want `deferred q.locked\(\) returns the Unlock of q.rw, which nothing calls: q.locked\(\)\(\) is meant`
	q.n++
}

// What follows is right.

func (q *queue) callsBoth() {
	defer q.lock()()
	unlock := q.locked()
	defer unlock()
	q.n++
}

func (q *queue) forTheCaller() {
	q.mu.Unlock()
	defer q.mu.Lock()
	q.n++
}

func (q *queue) forTheCallerByCall() {
	q.mu.Unlock()
	defer q.lock()
	q.n++
}

func (q *queue) forTheCallerLater() {
	defer q.lock()
	q.mu.Unlock()
	q.n++
}

func (q *queue) forTheCallerSometimes(rests bool) {
	if rests {
		q.unlock()
		defer q.lock()
	}
	q.n++
}

func (q *queue) unlock() { q.mu.Unlock() }

func (q *queue) forTheCallerOfReaders() {
	q.rw.RUnlock()
	defer q.locked()
	q.n++
}

func (q *queue) again() {
	q.mu.Lock()
	q.mu.Unlock()
	defer q.mu.Lock()
}

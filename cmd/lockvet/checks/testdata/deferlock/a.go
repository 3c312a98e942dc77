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

// What follows is right.

func (q *queue) forTheCaller() {
	q.mu.Unlock()
	defer q.mu.Lock()
	q.n++
}

func (q *queue) again() {
	q.mu.Lock()
	q.mu.Unlock()
	defer q.mu.Lock()
}

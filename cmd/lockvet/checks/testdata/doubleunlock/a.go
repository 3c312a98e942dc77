package doubleunlock

import (
	"context"
	"errors"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/reentrant"
)

var errFull = errors.New("full")

type queue struct {
	mu sync.Mutex
	rw sync.RWMutex
	re reentrant.Mutex
	n  int
}

func (q *queue) twice() {
	q.mu.Lock()
	if q.n > 9 {
		q.mu.Unlock()
	} else {
		q.n++
		q.mu.Unlock()
	}
	q.mu.Unlock() // want `Unlock of q.mu, which is already unlocked`
}

func (q *queue) deferred() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n > 9 {
		q.mu.Unlock()
		return errFull // want `return after Unlock of q.mu, which the deferred Unlock unlocks again`
	}
	return nil
}

func (q *queue) wrongSide() {
	q.rw.RLock()
	q.rw.Unlock() // want `Unlock of q.rw, which is read-locked`
}

func (q *queue) otherSide() {
	q.rw.Lock()
	q.n++
	q.rw.RUnlock() // want `RUnlock of q.rw, which is write-locked`
}

func (q *queue) context(ctx context.Context, l locks.Locker) error {
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	if err := l.UnlockContext(ctx); err != nil {
		return err
	}
	return l.UnlockContext(ctx) // want `UnlockContext of l, which is already unlocked`
}

// What follows is right.

func (q *queue) reentry() {
	q.re.Lock()
	q.re.Lock()
	q.re.Unlock()
	q.re.Unlock()
}

func (q *queue) reacquired() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n > 9 {
		q.mu.Unlock()
		work()
		q.mu.Lock()
	}
}

func (q *queue) forTheCaller() {
	q.mu.Unlock()
	defer q.mu.Lock()
	work()
}

func (q *queue) released(early bool) {
	q.mu.Lock()
	if early {
		q.mu.Unlock()
	}
	work()
	if !early {
		q.mu.Unlock()
	}
}

func (q *queue) each(others []*queue) {
	for _, o := range others {
		o.mu.Lock()
		o.mu.Unlock()
	}
}

type helped struct {
	mu sync.Mutex
	n  int
}

func (h *helped) enter() { h.mu.Lock() }

func (h *helped) again() {
	h.mu.Lock()
	h.mu.Unlock()
	h.enter()
	h.mu.Unlock()
}

func work() {}

// A function that forgets an Unlock does not hide the mistake of another one.

type both struct {
	mu sync.Mutex
	n  int
}

func (b *both) forgets() error {
	b.mu.Lock()
	if b.n > 9 {
		return errFull
	}
	b.mu.Unlock()
	return nil
}

func (b *both) unlocksTwice() {
	b.mu.Lock()
	b.mu.Unlock()
	b.mu.Unlock() // want `Unlock of b.mu, which is already unlocked`
}

func (q *queue) defersALock() error {
	q.mu.Lock()
	defer q.mu.Lock()
	q.mu.Unlock()
	if q.n > 9 {
		q.mu.Unlock() // want `Unlock of q.mu, which is already unlocked`
	}
	return nil // want `return after Unlock of q.mu, which the deferred Unlock unlocks again`
}

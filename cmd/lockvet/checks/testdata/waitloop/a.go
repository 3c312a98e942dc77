package waitloop

import (
	"context"
	"sync"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
)

type queue struct {
	mu       sync.Mutex
	cond     *sync.Cond
	own      fair.Mutex
	notEmpty *condition.Cond
	n        int
}

func (q *queue) take() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		q.cond.Wait() // want `Wait of a condition outside of a loop that checks what it waits for`
	}
	q.n--
}

func (q *queue) takeContext(ctx context.Context) error {
	if err := q.own.LockContext(ctx); err != nil {
		return err
	}
	defer q.own.Unlock()
	if q.n == 0 {
		if err := q.notEmpty.WaitContext(ctx); err != nil { // want `WaitContext of a condition outside of a loop`
			return err
		}
	}
	q.n--
	return nil
}

func (q *queue) inALoopOutside() {
	for range 3 {
		go func() {
			q.own.Lock()
			q.notEmpty.Wait() // want `Wait of a condition outside of a loop`
			q.own.Unlock()
		}()
	}
}

// What follows is right.

func (q *queue) loop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n == 0 {
		q.cond.Wait()
	}
	q.n--
}

func (q *queue) forever() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.n > 0 {
			return
		}
		q.cond.Wait()
	}
}

func (q *queue) jumps() {
	q.mu.Lock()
	defer q.mu.Unlock()
again:
	if q.n == 0 {
		q.cond.Wait()
		goto again
	}
}

func (q *queue) while(ctx context.Context) error {
	q.own.Lock()
	defer q.own.Unlock()
	return q.notEmpty.WaitWhile(ctx, func() bool { return q.n == 0 })
}

func (q *queue) waitOnce() {
	if q.n == 0 {
		q.cond.Wait()
	}
}

func (q *queue) park() { q.cond.Wait() }

func (q *queue) next() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if n := q.tryNext(); n > 0 {
			return n
		}
		q.idle()
	}
}

func (q *queue) tryNext() int { return q.n }

// idle has its loop in next.
func (q *queue) idle() {
	if q.n == 0 {
		q.cond.Wait()
	}
}

func (q *queue) worker() {
	for {
		q.takeOne()
	}
}

// takeOne goes on after the wait, so the loop of its caller does not help.
func (q *queue) takeOne() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		q.cond.Wait() // want `Wait of a condition outside of a loop`
	}
	q.n--
}

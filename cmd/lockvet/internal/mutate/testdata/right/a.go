// Package right has no mistake.
package right

import "sync"

type queue struct {
	mu   sync.Mutex
	rw   sync.RWMutex
	list []int
}

func (q *queue) take() (int, bool) {
	q.mu.Lock()
	if len(q.list) == 0 {
		q.mu.Unlock()
		return 0, false
	}
	first := q.list[0]
	q.list = q.list[1:]
	q.mu.Unlock()
	return first, true
}

func (q *queue) add(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, n)
}

func (q *queue) size() int {
	q.rw.RLock()
	n := len(q.list)
	q.rw.RUnlock()
	return n
}

func (q *queue) clear() {
	q.rw.Lock()
	q.list = nil
	q.rw.Unlock()
}

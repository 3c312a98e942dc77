package named

import "sync"

// Mutex has methods of its own, as wrappers with metrics have.
type Mutex struct {
	mu    sync.Mutex
	count int
}

func (m *Mutex) Lock() {
	m.mu.Lock()
	m.count++
}

func (m *Mutex) Unlock() { m.mu.Unlock() }

type queue struct {
	mu Mutex
	n  int
}

func (q *queue) twice() {
	q.mu.Lock()
	q.mu.Lock() // found: doublelock
	q.mu.Unlock()
}

func (q *queue) early() int {
	q.mu.Lock()
	if q.n > 9 {
		return 9 // found: missingunlock
	}
	q.mu.Unlock()
	return q.n
}

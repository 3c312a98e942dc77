package bench

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/internal/goid"
)

// Textbook is the reentrant lock as people write it by hand: a mutex, the goroutine that holds
// it, and a count.
type Textbook struct {
	mu    sync.Mutex
	owner atomic.Int64
	n     int
}

// Lock acquires the lock, or one more hold of it.
func (m *Textbook) Lock() {
	me := goid.Get()
	if m.owner.Load() == me {
		m.n++
		return
	}
	m.mu.Lock()
	m.owner.Store(me)
	m.n = 1
}

// Unlock releases one hold.
func (m *Textbook) Unlock() {
	if m.owner.Load() != goid.Get() {
		panic("bench: Unlock by another goroutine")
	}
	if m.n--; m.n == 0 {
		m.owner.Store(0)
		m.mu.Unlock()
	}
}

// CountedMap is locks by key as people write them by hand: a map of mutexes with counts.
type CountedMap[K comparable] struct {
	mu sync.Mutex
	m  map[K]*countedMutex
}

type countedMutex struct {
	sync.Mutex
	n int
}

// Lock acquires the lock of k.
func (c *CountedMap[K]) Lock(k K) {
	c.mu.Lock()
	if c.m == nil {
		c.m = map[K]*countedMutex{}
	}
	l := c.m[k]
	if l == nil {
		l = new(countedMutex)
		c.m[k] = l
	}
	l.n++
	c.mu.Unlock()
	l.Lock()
}

// Unlock releases the lock of k.
func (c *CountedMap[K]) Unlock(k K) {
	c.mu.Lock()
	l := c.m[k]
	if l.n--; l.n == 0 {
		delete(c.m, k)
	}
	c.mu.Unlock()
	l.Unlock()
}

// Timed is the lock with metrics as people write it by hand. It reads the clock when it is acquired
// and when it is released. If it must wait, it reads the clock before the wait too.
type Timed struct {
	mu                   sync.Mutex
	acquired, wait, hold atomic.Int64
	since                time.Time
}

// Lock acquires the lock.
func (m *Timed) Lock() {
	if !m.mu.TryLock() {
		asked := time.Now()
		m.mu.Lock()
		m.wait.Add(int64(time.Since(asked)))
	}
	m.acquired.Add(1)
	m.since = time.Now()
}

// Unlock releases the lock.
func (m *Timed) Unlock() {
	m.hold.Add(int64(time.Since(m.since)))
	m.mu.Unlock()
}

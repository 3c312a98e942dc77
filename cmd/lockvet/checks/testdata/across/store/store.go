// Package store has types whose locks another package uses.
package store

import "sync"

// Public has a lock that other packages may acquire.
type Public struct {
	Mu sync.Mutex
	n  int
}

func (p *Public) Add() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.n++
}

// AddLocked needs the lock.
func (p *Public) AddLocked() { p.n++ }

// Finish releases the lock.
func (p *Public) Finish() { p.Mu.Unlock() }

// Given gives its lock away, so that nothing is known of it.
type Given struct{ Mu sync.Mutex }

func (g *Given) Locker() sync.Locker { return &g.Mu }
func (g *Given) Use() {
	g.Mu.Lock()
	g.Mu.Unlock()
}

// Map calls functions of its users under its lock.
type Map struct {
	mu sync.RWMutex
	m  map[string]int
}

func (m *Map) Each(f func(string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.m {
		f(k)
	}
}

func (m *Map) View(f func(string)) { m.view(f) }

func (m *Map) view(f func(string)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f("")
}

// Apart calls f without the lock.
func (m *Map) Apart(f func(string)) {
	m.mu.Lock()
	m.mu.Unlock()
	f("")
}

// Later calls f when m is free.
func (m *Map) Later(f func(string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	go f("")
}

func (m *Map) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.m)
}

func (m *Map) Put(k string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.m[k]++
}

// First and Second have locks that this package acquires in this order.
type (
	First  struct{ Mu sync.Mutex }
	Second struct{ Mu sync.Mutex }
)

func Both(f *First, s *Second) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	s.Mu.Lock()
	defer s.Mu.Unlock()
}

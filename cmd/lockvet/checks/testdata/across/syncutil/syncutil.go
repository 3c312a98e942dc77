// Package syncutil has a lock of its own kind, and locks that other packages use.
package syncutil

import (
	"errors"
	"sync"
)

// A Mutex wraps a lock.
type Mutex struct {
	mu   sync.Mutex
	name string
}

func (m *Mutex) Lock()   { m.mu.Lock() }
func (m *Mutex) Unlock() { m.mu.Unlock() }

// Enter acquires the lock, unless the name is empty.
func (m *Mutex) Enter() error {
	m.mu.Lock()
	if m.name == "" {
		m.mu.Unlock()
		return errors.New("no name")
	}
	return nil
}

// LockBoth acquires two locks for the caller.
func LockBoth(a, b *sync.Mutex) {
	a.Lock()
	b.Lock()
}

// UnlockBoth releases them.
func UnlockBoth(a, b *sync.Mutex) {
	b.Unlock()
	a.Unlock()
}

var all sync.Mutex

func LockAll()   { all.Lock() }
func UnlockAll() { all.Unlock() }

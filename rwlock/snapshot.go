package rwlock

import (
	"sync/atomic"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/sched"
)

// Snapshot is a value that is read far more often than it is written. Readers take no lock: they
// never wait, retry, or see half of a change. Writers take turns. T can be any type, including
// strings, slices, interfaces and pointers. Java lacks such a type.
//
// Take a Snapshot if writers may wait for each other, so that each change is computed once. Take
// cas.Versioned if writers must not wait, or readers need the version.
//
// The zero Snapshot has the zero value of T. It must not be copied after first use. Reads and
// writes are linearizable. In the terms of the Go memory model, the write of a value synchronizes
// before each Load that returns the value or a later value.
//
// Each write stores a new copy behind an atomic pointer, and never changes an old copy. A Load is
// one atomic load and a copy of T, and is clean for the race detector. Store and Update allocate
// one T each, and lock a StampedLock. If that is too much, guard atomic fields with a StampedLock.
//
// Memory that T points to is not copied, and must not be changed. Store a new slice or map instead.
type Snapshot[T any] struct {
	value   atomic.Pointer[T] // nil: the zero value
	writers StampedLock
}

// Load returns the value. It never waits.
func (s *Snapshot[T]) Load() (value T) {
	if sched.On {
		sched.Begin("Load", s)
	}
	if p := s.value.Load(); p != nil {
		value = *p
	}
	return value
}

// Store sets the value. It waits for a Store or an Update under way.
func (s *Snapshot[T]) Store(value T) {
	st := s.writers.WriteLock()
	s.value.Store(&value)
	s.writers.UnlockWrite(st)
}

// Update sets the value to the result of f for the old value, and returns it. It waits for other
// writers, and calls f once. If f panics or ends the goroutine, the value is unchanged. f may
// Load s, but must not Store or Update it: that hangs. A nil f is a panic with
// [locks.ErrNilFunc].
func (s *Snapshot[T]) Update(f func(old T) T) T {
	if f == nil {
		panic(locks.ErrNilFunc)
	}
	defer s.writers.UnlockWrite(s.writers.WriteLock())
	value := f(s.Load())
	s.value.Store(&value)
	return value
}

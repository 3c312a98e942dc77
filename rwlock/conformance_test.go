package rwlock_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/rwlock"
)

func TestRWMutexConformsToTryLocker(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			lockstest.TestTryLocker(t, lockstest.Config{
				New:       func(testing.TB) locks.TryLocker { return rwlock.New(p) },
				Reentrant: true,
				FIFO:      p == locks.FIFO,
				Waiting:   func(l locks.TryLocker) int { return l.(*rwlock.RWMutex).QueueLength() },
			})
		})
	}
}

// views makes locks of which the suite sees only views, and remembers what they are views of.
type views struct {
	of map[locks.TryLocker]*rwlock.RWMutex
}

func (v *views) make(p locks.Policy, view func(*rwlock.RWMutex) locks.TryLocker) locks.TryLocker {
	if v.of == nil {
		v.of = map[locks.TryLocker]*rwlock.RWMutex{}
	}
	rw := rwlock.New(p)
	v.of[rw.ReadLocker()], v.of[rw.WriteLocker()] = rw, rw
	return view(rw)
}

func (v *views) waiting(l locks.TryLocker) int { return v.of[l].QueueLength() }

func TestWriteLockerConformsToTryLocker(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			var v views
			lockstest.TestTryLocker(t, lockstest.Config{
				New:       func(testing.TB) locks.TryLocker { return v.make(p, (*rwlock.RWMutex).WriteLocker) },
				Reentrant: true,
				FIFO:      p == locks.FIFO,
				Waiting:   v.waiting,
			})
		})
	}
}

func TestReadLockerConformsToTryLocker(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			var v views
			lockstest.TestTryLocker(t, lockstest.Config{
				New:       func(testing.TB) locks.TryLocker { return v.make(p, (*rwlock.RWMutex).ReadLocker) },
				Exclusive: func(l locks.TryLocker) locks.TryLocker { return v.of[l].WriteLocker() },
				Reentrant: true,
				FIFO:      p == locks.FIFO,
				Waiting:   v.waiting,
			})
		})
	}
}

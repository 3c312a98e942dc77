package lockstest_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

// Replace fair.Mutex by your lock.
func ExampleTestTryLocker() {
	testMyLock := func(t *testing.T) { // in a file of your tests: func TestMyLock
		lockstest.TestTryLocker(t, lockstest.Config{
			New:  func(testing.TB) locks.TryLocker { return new(fair.Mutex) },
			FIFO: true,
		})
	}
	_ = testMyLock
}

// readView is the read side of a lock that the suite can ask for the write side.
type readView struct {
	locks.TryLocker
	of *rwlock.RWMutex
}

// A Config declares what a lock promises beyond the interface.
func ExampleConfig() {
	configs := map[string]lockstest.Config{
		"reentrant": {
			New:       func(testing.TB) locks.TryLocker { return new(reentrant.Mutex) },
			Reentrant: true,
			Waiting:   func(l locks.TryLocker) int { return l.(*reentrant.Mutex).QueueLength() },
		},
		"read view": {
			New: func(testing.TB) locks.TryLocker {
				rw := new(rwlock.RWMutex)
				return readView{rw.ReadLocker(), rw}
			},
			Reentrant: true,
			Exclusive: func(view locks.TryLocker) locks.TryLocker { return view.(readView).of.WriteLocker() },
		},
	}
	testMyLocks := func(t *testing.T) {
		for name, config := range configs {
			t.Run(name, func(t *testing.T) { lockstest.TestTryLocker(t, config) })
		}
	}
	_ = testMyLocks
}

package fair_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest"
)

func TestMutexConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:     func(testing.TB) locks.TryLocker { return new(fair.Mutex) },
		FIFO:    true,
		Waiting: func(l locks.TryLocker) int { return l.(*fair.Mutex).QueueLength() },
	})
}

func TestBargingMutexConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:     func(testing.TB) locks.TryLocker { return new(fair.BargingMutex) },
		Waiting: func(l locks.TryLocker) int { return l.(*fair.BargingMutex).QueueLength() },
	})
}

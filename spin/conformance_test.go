package spin_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/spin"
)

func TestMutexConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:     func(testing.TB) locks.TryLocker { return new(spin.Mutex) },
		Waiting: func(l locks.TryLocker) int { return l.(*spin.Mutex).QueueLength() },
	})
}

func TestTicketConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:     func(testing.TB) locks.TryLocker { return new(spin.Ticket) },
		FIFO:    true,
		Waiting: func(l locks.TryLocker) int { return l.(*spin.Ticket).QueueLength() },
	})
}

func TestMCSConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:     func(testing.TB) locks.TryLocker { return new(spin.MCS) },
		FIFO:    true,
		Waiting: func(l locks.TryLocker) int { return l.(*spin.MCS).QueueLength() },
	})
}

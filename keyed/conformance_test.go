package keyed_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/lockstest"
)

func TestLockConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:       func(testing.TB) locks.TryLocker { return keyed.New[string](locks.FIFO).Of("x") },
		Reentrant: true,
		FIFO:      true,
		Waiting:   func(l locks.TryLocker) int { return l.(keyed.Mutex[string]).QueueLength() },
	})
}

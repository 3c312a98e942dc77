package reentrant_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/reentrant"
)

func TestMutexConformsToTryLocker(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			lockstest.TestTryLocker(t, lockstest.Config{
				New:       func(testing.TB) locks.TryLocker { return reentrant.New(p) },
				Reentrant: true,
				FIFO:      p == locks.FIFO,
				Waiting:   func(l locks.TryLocker) int { return l.(*reentrant.Mutex).QueueLength() },
			})
		})
	}
}

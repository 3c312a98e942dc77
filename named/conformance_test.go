package named_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/named"
)

func TestLockConformsToTryLocker(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:       func(testing.TB) locks.TryLocker { return named.New(named.WithPolicy(fair.FIFO)).Locker("x") },
		Reentrant: true,
		FIFO:      true,
		Waiting:   func(l locks.TryLocker) int { return l.(*named.Lock).QueueLength() },
	})
}

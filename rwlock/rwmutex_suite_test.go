package rwlock_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/locktest"
)

// The write side is a mutex like the others of this module. Package condition has the suite of
// conditions, which runs over it too.

func TestWriteSideLikeEveryMutex(t *testing.T) {
	locktest.Run(t, locktest.ReadWrite(), locktest.Plain)
}

func TestOrderOfWriters(t *testing.T) { locktest.Run(t, locktest.ReadWrite(), locktest.Order) }

func TestCancellationOfWriters(t *testing.T) {
	locktest.Run(t, locktest.ReadWrite(), locktest.Cancelling)
}

func TestBargingOfWriters(t *testing.T) { locktest.Run(t, locktest.ReadWrite(), locktest.Barging) }

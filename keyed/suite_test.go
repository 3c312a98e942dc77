package keyed_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/locktest"
)

func TestPlainFamily(t *testing.T) { locktest.Run(t, locktest.Keyed(), locktest.Plain) }

func TestOrder(t *testing.T) { locktest.Run(t, locktest.Keyed(), locktest.Order) }

func TestCancellation(t *testing.T) { locktest.Run(t, locktest.Keyed(), locktest.Cancelling) }

func TestAllocations(t *testing.T) { locktest.Run(t, locktest.Keyed(), locktest.Allocations) }

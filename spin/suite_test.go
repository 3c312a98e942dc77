package spin_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/locktest"
)

func TestPlainFamily(t *testing.T) { locktest.Run(t, locktest.Spin(), locktest.Plain) }

func TestOrder(t *testing.T) { locktest.Run(t, locktest.Spin(), locktest.Order) }

func TestCancellation(t *testing.T) { locktest.Run(t, locktest.Spin(), locktest.Cancelling) }

func TestAllocations(t *testing.T) { locktest.Run(t, locktest.Spin(), locktest.Allocations) }

func TestBarging(t *testing.T) { locktest.Run(t, locktest.Spin()[:1], locktest.Barging) }

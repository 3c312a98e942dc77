package fair_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/locktest"
)

func TestPlainFamily(t *testing.T) { locktest.Run(t, locktest.Fair(), locktest.Plain) }

func TestOrder(t *testing.T) { locktest.Run(t, locktest.Fair(), locktest.Order) }

func TestCancellation(t *testing.T) { locktest.Run(t, locktest.Fair(), locktest.Cancelling) }

func TestAllocations(t *testing.T) { locktest.Run(t, locktest.Fair(), locktest.Allocations) }

func TestBarging(t *testing.T) { locktest.Run(t, locktest.Fair(), locktest.Barging) }

package reentrant_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/locktest"
)

func TestPlainFamily(t *testing.T) { locktest.Run(t, locktest.Reentrant(), locktest.Plain) }

func TestOrder(t *testing.T) { locktest.Run(t, locktest.Reentrant(), locktest.Order) }

func TestCancellation(t *testing.T) { locktest.Run(t, locktest.Reentrant(), locktest.Cancelling) }

func TestAllocations(t *testing.T) { locktest.Run(t, locktest.Reentrant(), locktest.Allocations) }

func TestBarging(t *testing.T) { locktest.Run(t, locktest.Reentrant(), locktest.Barging) }

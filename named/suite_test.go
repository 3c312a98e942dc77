package named_test

import (
	"testing"

	"github.com/jucgo/locks/internal/testkit/locktest"
)

func TestPlainFamily(t *testing.T) { locktest.Run(t, locktest.Named(), locktest.Plain) }

func TestOrder(t *testing.T) { locktest.Run(t, locktest.Named(), locktest.Order) }

func TestCancellation(t *testing.T) { locktest.Run(t, locktest.Named(), locktest.Cancelling) }

func TestAllocations(t *testing.T) { locktest.Run(t, locktest.Named(), locktest.Allocations) }

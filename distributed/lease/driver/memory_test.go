package driver_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestTheStoreOfTheExamplesIsProved(t *testing.T) {
	leasetest.TestInVirtualTime(t, func(testing.TB) leasetest.Config {
		server := newMemory()
		return leasetest.Config{
			Store: func(testing.TB, *leasetest.Link) driver.Store { return server },
		}
	})
}

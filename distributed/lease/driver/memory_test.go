package driver_test

import (
	"testing"
	"time"

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

func TestTheStoreOfTheExamplesIsSimulated(t *testing.T) {
	leasetest.Simulate(t, leasetest.World{For: time.Minute, Open: func(testing.TB) leasetest.Config {
		server := newMemory()
		return leasetest.Config{Store: func(testing.TB, *leasetest.Link) driver.Store { return server }}
	}})
}

package lease_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestTheStoreOfTheExamplesIsProved(t *testing.T) {
	server := newMemory()
	leasetest.TestStore(t, leasetest.Config{
		Store: func(testing.TB, *leasetest.Link) lease.Store { return server },
	})
}

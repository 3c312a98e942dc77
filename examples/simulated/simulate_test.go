package simulated_test

import (
	"net"
	"testing"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// All processes of a life use one Store. Requests to it are lost, late and repeated.
func TestTheStoreInMemoryIsSimulated(t *testing.T) {
	leasetest.Simulate(t, leasetest.World{Open: func(testing.TB) leasetest.Config {
		server := newStore()
		return leasetest.Config{Store: func(testing.TB, *leasetest.Link) driver.Store { return server }}
	}})
}

// Each process has a client of its own, whose connections are cut, silent and slow.
func TestTheStoreBehindConnectionsIsSimulated(t *testing.T) {
	leasetest.Simulate(t, leasetest.World{Open: func(testing.TB) leasetest.Config {
		server := newStore()
		return leasetest.Config{Store: func(_ testing.TB, link *leasetest.Link) driver.Store {
			return &client{dial: func() (net.Conn, error) { return link.Pipe(server.Serve), nil }}
		}}
	}})
}

package leasetest_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
)

// mystore stands for your adapter, and server for a server that the test has started.
var (
	mystore = fakestore.NewServer("")
	server  = "127.0.0.1:7000"
)

// The clients of a check connect through their Links, which can be cut.
func ExampleTestStore() {
	testMyStore := func(t *testing.T) { // in a file of your tests: func TestMyStore
		leasetest.TestStore(t, leasetest.Config{
			Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
				store, end := mystore.Client(fakestore.Queued, func(ctx context.Context) (net.Conn, error) {
					return link.DialContext(ctx, "tcp", server)
				}, link.TTL())
				tb.Cleanup(end)
				return store
			},
			FIFO: true,
			TTL:  2 * time.Second,
		})
	}
	_ = testMyStore
}

// The server of each check is in the memory of the test, so that no check waits for the end of a
// lease.
func ExampleTestInVirtualTime() {
	testMyStore := func(t *testing.T) { // in a file of your tests: func TestMyStore
		leasetest.TestInVirtualTime(t, func(testing.TB) leasetest.Config {
			server := fakestore.NewServer("")
			return leasetest.Config{
				Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
					store, end := server.Client(fakestore.Watched, nil, link.TTL())
					tb.Cleanup(end)
					return store
				},
			}
		})
	}
	_ = testMyStore
}

// The clients speak with their server over connections, which fail as connections of a network do.
func ExampleLink_Pipe() {
	testMyStore := func(t *testing.T) {
		leasetest.TestInVirtualTime(t, func(testing.TB) leasetest.Config {
			server := fakestore.NewServer("")
			return leasetest.Config{
				Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
					store, end := server.Client(fakestore.Queued, func(context.Context) (net.Conn, error) {
						return link.Pipe(server.Serve), nil
					}, link.TTL())
					tb.Cleanup(end)
					return store
				},
				FIFO: true,
			}
		})
	}
	_ = testMyStore
}

// The reply to a request is lost. The client asks which acquisition holds, and has the lock.
func ExampleRequests() {
	ctx := context.Background()
	store, end := mystore.Client(fakestore.Watched, nil, time.Minute)
	defer end()
	var requests *leasetest.Requests = leasetest.NewRequests(store)
	client, err := lease.New(requests)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)

	requests.Next(leasetest.Acquire, leasetest.LostReply)
	held, err := client.Mutex("orders").TryLockContext(ctx)
	fmt.Println(held, err, "after", requests.Count(leasetest.Lookup), "question")
	// Output: true <nil> after 1 question
}

// A client without a dialer of its own connects to the address of a Proxy.
func ExampleProxy() {
	testMyStore := func(t *testing.T) {
		var proxy *leasetest.Proxy = leasetest.NewProxy(t, server)
		fmt.Println("connect to", proxy.Addr())
		proxy.CutReplies()
		// ... requests are carried out, and have no answers
		proxy.Heal()
	}
	_ = testMyStore
}

// Processes use locks of a server in memory while everything fails that can fail, for an hour of
// simulated time.
func ExampleSimulate() {
	testMyStore := func(t *testing.T) { // in a file of your tests: func TestMyStore
		leasetest.Simulate(t, leasetest.World{
			For: time.Hour,
			Open: func(testing.TB) leasetest.Config {
				server := fakestore.NewServer("")
				return leasetest.Config{Store: func(tb testing.TB, _ *leasetest.Link) driver.Store {
					store, end := server.Client(fakestore.Watched, nil, time.Minute)
					tb.Cleanup(end)
					return store
				}}
			},
		})
	}
	_ = testMyStore
}

// The clients have connections to their server, which fail as connections of a network do.
func ExampleWorld() {
	testMyStore := func(t *testing.T) {
		leasetest.Simulate(t, leasetest.World{Open: func(testing.TB) leasetest.Config {
			server := fakestore.NewServer("")
			return leasetest.Config{Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
				store, end := server.Client(fakestore.Watched, func(context.Context) (net.Conn, error) {
					return link.Pipe(server.Serve), nil
				}, link.TTL())
				tb.Cleanup(end)
				return store
			}}
		}})
	}
	_ = testMyStore
}

// Package suite has the tests that package redislock must pass with each client library, and their
// kit.
package suite

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// Driver makes Clients over a client library, each with connections of its own. The connections
// are closed with tb, after what is registered later.
type Driver struct {
	Client func(tb testing.TB, to Way, opts ...redislock.Option) *redislock.Client
	// Redlock has a Way to each of its servers.
	Redlock func(tb testing.TB, to []Way, opts ...redislock.Option) *redlock.Client
	// Eval is in each request that runs a script.
	Eval string
	// Leaks are the goroutines that the library leaves for a while when it is closed.
	Leaks []goleak.Option
}

// Way is where a client library finds its servers.
type Way struct {
	// Addrs are the addresses of servers of a cluster, the address of a sentinel, or the address of
	// the server.
	Addrs    []string
	Cluster  bool
	Sentinel bool // of the master called it
	// Reply is how long the library waits for a reply, more or less.
	Reply time.Duration
	// Dial, if not nil, makes the connections.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// reply is how long a patient client waits for a reply.
const reply = Hang

// client returns a Client that is closed with the test.
func (on Driver) client(tb testing.TB, to Way, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	c := on.Client(tb, to, append(slices.Clip(Unhurried), opts...)...)
	tb.Cleanup(func() { adaptertest.Close(tb, c) })
	return c
}

// Server returns a Client of the server at addr, which waits for a reply for so long, more or
// less.
func (on Driver) Server(tb testing.TB, addr string, reply time.Duration, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	return on.client(tb, Way{Addrs: []string{addr}, Reply: reply}, opts...)
}

// Open returns a Client of the server at addr, which is patient.
func (on Driver) Open(tb testing.TB, addr string, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	return on.Server(tb, addr, reply, opts...)
}

// sentinel returns a Client of the master that the sentinel names.
func (on Driver) sentinel(tb testing.TB, sentinel string, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	return on.client(tb, Way{Addrs: []string{sentinel}, Sentinel: true, Reply: reply}, opts...)
}

// across returns a Client of the cluster of nodes.
func (on Driver) across(tb testing.TB, nodes []*Server, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	return on.client(tb, Way{Addrs: addrs(nodes), Cluster: true, Reply: reply}, opts...)
}

func addrs(nodes []*Server) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

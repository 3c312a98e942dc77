// Package suite has the tests that package redislock has to pass with each client library, and
// what they need.
package suite

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/redislock"
)

// Driver makes Clients over a client library, each with connections of its own. They are closed
// with tb.
type Driver struct {
	// Server returns a Client of the server at addr, which waits for a reply for so long, more or
	// less.
	Server func(tb testing.TB, addr string, reply time.Duration, opts ...redislock.Option) *redislock.Client
	// Sentinel returns a Client of the master called it that the sentinel names.
	Sentinel func(tb testing.TB, sentinel string, opts ...redislock.Option) *redislock.Client
	// Cluster returns a Client of the cluster of the servers at addrs.
	Cluster func(tb testing.TB, addrs []string, opts ...redislock.Option) *redislock.Client
	// Eval is in each request that runs a script.
	Eval string
	// Leaks are the goroutines that the library leaves for a while when it is closed.
	Leaks []goleak.Option
}

// Open returns a Client of the server at addr, which is patient.
func (on Driver) Open(tb testing.TB, addr string, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	return on.Server(tb, addr, 5*time.Second, opts...)
}

// across returns a Client of the cluster of nodes.
func (on Driver) across(tb testing.TB, nodes []*Server, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	return on.Cluster(tb, addrs(nodes), opts...)
}

func addrs(nodes []*Server) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

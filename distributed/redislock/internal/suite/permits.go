package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// SemaphoresPassTheKitOnRedis proves semaphores on one server.
func SemaphoresPassTheKitOnRedis(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	on.proveSemaphores(t, Way{Addrs: []string{s.Addr}}, []string{s.Addr})
}

// SemaphoresPassTheKitOnACluster proves them on three masters.
func SemaphoresPassTheKitOnACluster(t *testing.T, on Driver) {
	t.Parallel()
	nodes := addrs(StartNodes(t))
	on.proveSemaphores(t, Way{Addrs: nodes, Cluster: true}, nodes)
}

// SemaphoresThatReplicasAcknowledgePassTheKit proves them if a replica has to acknowledge
// acquisitions.
func SemaphoresThatReplicasAcknowledgePassTheKit(t *testing.T, on Driver) {
	t.Parallel()
	master := StartMaster(t)
	StartReplica(t, master.Addr)
	on.proveSemaphores(t, Way{Addrs: []string{master.Addr}}, []string{master.Addr}, replicated(2*time.Second))
}

// proveSemaphores runs the kit on semaphores, whose keys are on the servers at masters.
func (on Driver) proveSemaphores(t *testing.T, to Way, masters []string, more ...redislock.Option) {
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			to := to
			to.Reply, to.Dial = reply, link.DialContext
			c := on.Client(tb, to, append(more[:len(more):len(more)], redislock.WithLeaseOptions(opts...))...)
			closed(tb, c)
			semaphores, err := driver.Semaphores(c)
			require.NoError(tb, err)
			return semaphores
		},
		Semaphore: leasetest.Semaphores,
		Parallel:  4,
		Rest:      rest(t, masters),
	})
}

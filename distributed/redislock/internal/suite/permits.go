package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// SemaphoresPassTheKitOnRedis proves semaphores on one server.
func SemaphoresPassTheKitOnRedis(t *testing.T, on Driver) {
	t.Parallel()
	addr := Addr(t)
	on.proveSemaphores(t, Way{Addrs: []string{addr}}, []string{addr})
}

// SemaphoresPassTheKitOnACluster proves them on three masters.
func SemaphoresPassTheKitOnACluster(t *testing.T, on Driver) {
	t.Parallel()
	nodes := addrs(StartNodes(t))
	on.proveSemaphores(t, Way{Addrs: nodes, Cluster: true}, nodes)
}

// SemaphoresThatReplicasAcknowledgePassTheKit proves them if a replica must acknowledge
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
			semaphores, err := redisport.Semaphores(c)
			require.NoError(tb, err)
			return semaphores
		},
		Semaphore: leasetest.Semaphores,
		Parallel:  4,
		Rest:      rest(t, masters),
	})
}

// RedissonsSemaphoresPassTheKit proves those whose permits have leases. Their size is in the store.
func RedissonsSemaphoresPassTheKit(t *testing.T, on Driver) {
	t.Parallel()
	addr := Addr(t)
	leasetest.TestStore(t, leasetest.Config{
		Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
			c := on.Client(tb, Way{Addrs: []string{addr}, Reply: reply, Dial: link.DialContext})
			closed(tb, c)
			return sized{redisport.Expirable(c), c}
		},
		Semaphore: leasetest.Semaphores,
		Parallel:  4,
	})
}

// sized is a store that sets the size of a semaphore to the size in a request.
type sized struct {
	driver.Store
	c *redislock.Client
}

func (s sized) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	_, size := req.Weigh()
	if err := s.c.RedissonExpirableSemaphore(req.Name).SetPermits(ctx, size); err != nil {
		return driver.Reply{}, err
	}
	return s.Store.Acquire(ctx, req)
}

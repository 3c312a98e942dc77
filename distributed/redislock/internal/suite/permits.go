package suite

import (
	"context"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
)

// SemaphoresPassTheKitOnRedis runs the kit on semaphores of one server.
func SemaphoresPassTheKitOnRedis(t *testing.T, on Driver) {
	t.Parallel()
	addr := Addr(t)
	on.proveSemaphores(t, Way{Addrs: []string{addr}}, []string{addr})
}

// SemaphoresPassTheKitOnACluster runs the kit on semaphores of three masters.
func SemaphoresPassTheKitOnACluster(t *testing.T, on Driver) {
	t.Parallel()
	nodes := addrs(StartNodes(t))
	on.proveSemaphores(t, Way{Addrs: nodes, Cluster: true}, nodes)
}

// SemaphoresThatReplicasAcknowledgePassTheKit runs the kit on semaphores whose acquisitions a
// replica must acknowledge.
func SemaphoresThatReplicasAcknowledgePassTheKit(t *testing.T, on Driver) {
	t.Parallel()
	master := StartMaster(t)
	StartReplica(t, master.Addr)
	on.proveSemaphores(t, Way{Addrs: []string{master.Addr}}, []string{master.Addr}, replicated(2*time.Second))
}

// proveSemaphores runs the kit on semaphores, whose keys are on the servers at masters.
func (on Driver) proveSemaphores(t *testing.T, to Way, masters []string, more ...redislock.Option) {
	leasetest.TestStore(t, leasetest.Config{
		Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
			to := to
			to.Reply, to.Dial = kitReply, link.DialContext
			keep, store := lastStore()
			c := on.Client(tb, to, append(more[:len(more):len(more)], keep)...)
			closed(tb, c)
			c.Semaphore("", 1)
			return *store
		},
		Semaphore: leasetest.Semaphores,
		Parallel:  4,
		Rest:      rest(t, masters),
	})
}

// lastStore returns where to find the store that a client with the option keep has made last. A
// client makes the store of a kind of lock with the first lock of this kind.
func lastStore() (keep redislock.Option, store *driver.Store) {
	store = new(driver.Store)
	return redislock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
		*store = s
		return s
	})), store
}

// RedissonsSemaphoresPassTheKit runs the kit on Redisson's semaphores whose permits have leases.
// Their size is in the store.
func RedissonsSemaphoresPassTheKit(t *testing.T, on Driver) {
	t.Parallel()
	addr := Addr(t)
	leasetest.TestStore(t, leasetest.Config{
		Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
			keep, store := lastStore()
			c := on.Client(tb, Way{Addrs: []string{addr}, Reply: kitReply, Dial: link.DialContext}, keep)
			closed(tb, c)
			c.RedissonExpirableSemaphore("")
			return sized{*store, c}
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

package zklock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// provider gives the locks of a kind.
type provider struct {
	*zklock.Client
	kind string
}

func (p provider) Locker(name string) locks.TryLocker { return kinds[p.kind].lock(p.Client, name) }

// prove runs the kit on the locks of a kind, whose clients know all of these servers.
func prove(t *testing.T, servers []*testbed.ZooKeeper, kind string) {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	const ttl = 4 * time.Second
	direct := connect(t, addrs[0])
	cfg := leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			// Some requests end with their connection only, which the session's time limits.
			session := timeout(min(link.TTL(), 20*time.Second))
			c := openAll(tb, addrs, session, zklock.WithDialer(link.DialContext),
				zklock.WithLeaseOptions(opts...))
			return provider{c, kind}
		},
		Name:        func(name string) string { return "/" + name },
		SpuriousTry: kind != "ephemeral", // each attempt has a place in the queue
		FIFO:        kind != "ephemeral",
		TTL:         ttl,
		Limit:       20 * time.Second, // on a busy machine, and less than a lease
		Parallel:    4,                // the kinds of locks share a server
		Rest:        direct.rest,
	}
	if kind == "write" {
		cfg.Read = func(p locks.Provider, name string) locks.TryLocker { return read(p.(provider).RWMutex(name)) }
	}
	if kind == "semaphore" {
		cfg.Semaphore = func(p locks.Provider, name string, size int64) locks.Semaphore {
			return p.(provider).Semaphore(name, size)
		}
	}
	leasetest.TestStore(t, cfg)
}

// rest reports the nodes which are left of a lock. Those of a dead client end with its session.
// ZooKeeper removes directories in which there were nodes.
func (a admin) rest(tb testing.TB, name string) {
	var left []string
	for end := time.Now().Add(testbed.Hang); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err := a.Sync("/") // with the leader
		require.NoError(tb, err)
		left = nil
		if _, st, err := a.Exists(name); err == nil && st.EphemeralOwner != 0 {
			left = []string{name}
		}
		for _, dir := range []string{"", "/locks", "/leases"} {
			left = append(left, a.list(name+dir)...)
		}
		left = slices.DeleteFunc(left, func(node string) bool { return node == "locks" || node == "leases" })
		if len(left) == 0 {
			return
		}
	}
	tb.Errorf("nodes are left of %s: %v", name, left)
}

func TestSemaphoresPassTheKit(t *testing.T) {
	t.Parallel()
	prove(t, []*testbed.ZooKeeper{zklock.LendServer(t)}, "semaphore")
}

func TestLocksPassTheKit(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) []*testbed.ZooKeeper{
		"1": func(t *testing.T) []*testbed.ZooKeeper { return []*testbed.ZooKeeper{zklock.LendServer(t)} },
		"3": func(t *testing.T) []*testbed.ZooKeeper { return testbed.StartZooKeepers(t, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := start(t)
			for kind := range kinds {
				if kind == "semaphore" && len(servers) == 1 {
					continue // TestSemaphoresPassTheKit has it, with its permits
				}
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					prove(t, servers, kind)
				})
			}
		})
	}
}

package etcdlock_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// provider gives the locks of a kind.
type provider struct {
	*etcdlock.Client
	kind string
}

func (p provider) Locker(name string) locks.TryLocker { return provable[p.kind](p.Client, name) }

// provable are the kinds of locks. A read-write lock is called by its write lock.
var provable = map[string]func(c *etcdlock.Client, name string) locks.TryLocker{
	"mutex":     func(c *etcdlock.Client, name string) locks.TryLocker { return c.Mutex(name) },
	"write":     func(c *etcdlock.Client, name string) locks.TryLocker { return c.RWMutex(name).WriteLocker() },
	"semaphore": func(c *etcdlock.Client, name string) locks.TryLocker { return c.SemaphoreLock(name) },
}

func TestLocksPassTheKit(t *testing.T) {
	t.Parallel()
	for _, on := range []struct {
		version string
		members int
		kinds   []string
	}{
		{"", 1, []string{"mutex", "write"}},
		{"3.5", 1, []string{"mutex"}}, {"3.5", 3, []string{"write"}},
		{"3.6", 1, []string{"write"}}, {"3.6", 3, []string{"mutex"}},
	} {
		t.Run(fmt.Sprintf("%s/%d", cmp.Or(on.version, "installed"), on.members), func(t *testing.T) {
			t.Parallel()
			var addrs []string
			for _, m := range startCluster(t, on.version, on.members) {
				addrs = append(addrs, m.addr)
			}
			for _, kind := range on.kinds {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					prove(t, addrs, kind)
				})
			}
		})
	}
}

func TestSemaphoresPassTheKit(t *testing.T) {
	t.Parallel()
	members := 1
	if f := flag.Lookup("leasetest.long"); f.Value.String() != f.DefValue {
		members = 3
	}
	var addrs []string
	for _, m := range startCluster(t, "", members) {
		addrs = append(addrs, m.addr)
	}
	prove(t, addrs, "semaphore")
}

// prove runs the kit on the locks of a kind.
func prove(t *testing.T, addrs []string, kind string) {
	const ttl = 4 * time.Second
	cfg := leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			through := func(ctx context.Context, addr string) (net.Conn, error) {
				return link.DialContext(ctx, "tcp", addr)
			}
			conn, err := dialWith([]grpc.DialOption{grpc.WithContextDialer(through)}, addrs...)
			require.NoError(tb, err)
			tb.Cleanup(func() { conn.Close() })
			c, err := etcdlock.New(conn, term(link.TTL()), etcdlock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(background, long)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return provider{c, kind}
		},
		FIFO:  true,
		TTL:   ttl,
		Limit: 20 * time.Second, // on a busy machine, and less than a lease
		Rest:  rest(connect(t, addrs...)),
	}
	if kind == "write" {
		cfg.Read = func(p locks.Provider, name string) locks.TryLocker {
			return p.(provider).RWMutex(name).ReadLocker()
		}
	}
	if kind == "semaphore" {
		cfg.Semaphore = func(p locks.Provider, name string, size int64) locks.Semaphore {
			return p.(provider).Semaphore(name, size)
		}
	}
	leasetest.TestStore(t, cfg)
}

// rest returns a function that reports the keys which are left of a lock. Those of a dead client
// end with its session, which lasts for up to a minute.
func rest(direct *clientv3.Client) func(tb testing.TB, name string) {
	return func(tb testing.TB, name string) {
		var left []string
		for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			resp, err := direct.Get(background, name, clientv3.WithPrefix(), clientv3.WithKeysOnly())
			require.NoError(tb, err)
			left = nil
			for _, kv := range resp.Kvs {
				left = append(left, string(kv.Key))
			}
			if len(left) == 0 {
				return
			}
		}
		tb.Errorf("keys are left of %s: %v", name, left)
	}
}

package etcdlock_test

import (
	"context"
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
	locker func(c *etcdlock.Client, name string) locks.TryLocker
}

func (p provider) Locker(name string) locks.TryLocker { return p.locker(p.Client, name) }

func mutex(c *etcdlock.Client, name string) locks.TryLocker { return c.Mutex(name) }

func writer(c *etcdlock.Client, name string) locks.TryLocker { return c.RWMutex(name).WriteLocker() }

// prove runs the kit on the locks of a kind, whose clients know all of these members.
func prove(t *testing.T, members []*server, locker func(c *etcdlock.Client, name string) locks.TryLocker,
	change func(*leasetest.Config)) {
	t.Parallel()
	var addrs []string
	for _, m := range members {
		addrs = append(addrs, m.addr)
	}
	const ttl = 4 * time.Second
	cfg := leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			through := func(ctx context.Context, addr string) (net.Conn, error) {
				return link.DialContext(ctx, "tcp", addr)
			}
			conn, err := dialWith([]grpc.DialOption{grpc.WithContextDialer(through)}, addrs...)
			require.NoError(tb, err)
			tb.Cleanup(func() { conn.Close() })
			c, err := etcdlock.New(conn, term(ttl), etcdlock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return provider{c, locker}
		},
		FIFO: true,
		TTL:  ttl,
		Rest: rest(connect(t, addrs...)),
	}
	if change != nil {
		change(&cfg)
	}
	leasetest.TestStore(t, cfg)
}

// rest returns a function that reports the keys which are left of a lock. Those of a dead client
// end with its session.
func rest(direct *clientv3.Client) func(tb testing.TB, name string) {
	return func(tb testing.TB, name string) {
		var left []string
		for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			resp, err := direct.Get(context.Background(), name, clientv3.WithPrefix(), clientv3.WithKeysOnly())
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

func TestMutexesPassTheKit(t *testing.T) { prove(t, startCluster(t, 1), mutex, nil) }

func TestMutexesOnThreeMembersPassTheKit(t *testing.T) { prove(t, startCluster(t, 3), mutex, nil) }

func TestReadWriteLocksPassTheKit(t *testing.T) {
	prove(t, startCluster(t, 1), writer, func(cfg *leasetest.Config) {
		cfg.Read = func(p locks.Provider, name string) locks.TryLocker {
			return p.(provider).RWMutex(name).ReadLocker()
		}
	})
}

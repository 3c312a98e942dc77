package etcdlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/jucgo/locks/internal/test/testbed"
)

// server is a member of an etcd cluster of the test's own.
type server struct {
	*testbed.Etcd
	addr string // of clients
}

// startServer runs a cluster of one until the test ends. Its leases may be as short as a second.
func startServer(tb testing.TB) *server {
	tb.Helper()
	return startCluster(tb, "", 1)[0]
}

// startCluster runs a cluster of n members until the test ends. The version is that of
// [testbed.StartEtcd].
func startCluster(tb testing.TB, version string, n int) []*server {
	tb.Helper()
	var servers []*server
	for _, m := range testbed.StartEtcd(tb, version, n) {
		servers = append(servers, &server{m, m.Addr()})
	}
	return servers
}

// connect returns a client that is closed with the test, after what is registered later.
func connect(tb testing.TB, addrs ...string) *clientv3.Client {
	tb.Helper()
	c, err := dial(addrs...)
	require.NoError(tb, err)
	tb.Cleanup(func() { c.Close() })
	return c
}

func dial(addrs ...string) (*clientv3.Client, error) { return dialWith(nil, addrs...) }

func dialWith(opts []grpc.DialOption, addrs ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop(), DialOptions: opts,
	})
}

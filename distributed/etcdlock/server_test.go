package etcdlock_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/jucgo/locks/internal/testkit/testbed"
)

// server is a member of an etcd cluster of the test's own.
type server struct {
	*testbed.Process
	addr string // of clients
	args []string
}

// startServer runs a cluster of one until the test ends. Its leases may be as short as a second.
func startServer(tb testing.TB) *server {
	tb.Helper()
	return startCluster(tb, 1)[0]
}

// startCluster runs a cluster of n members until the test ends.
func startCluster(tb testing.TB, n int) []*server {
	tb.Helper()
	path := testbed.Lookup(tb, "etcd")
	servers := make([]*server, n)
	var cluster []string
	for i := range servers {
		peer := fmt.Sprintf("http://127.0.0.1:%d", testbed.Port(tb))
		servers[i] = &server{addr: fmt.Sprintf("127.0.0.1:%d", testbed.Port(tb))}
		name := fmt.Sprint("n", i)
		cluster = append(cluster, name+"="+peer)
		servers[i].args = []string{
			path, "--name", name, "--data-dir", tb.TempDir(), "--unsafe-no-fsync",
			"--logger", "zap", "--log-level", "fatal",
			"--listen-client-urls", "http://" + servers[i].addr, "--advertise-client-urls", "http://" + servers[i].addr,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--heartbeat-interval", "20", "--election-timeout", "200",
		}
	}
	for _, s := range servers {
		s.args = append(s.args, "--initial-cluster", strings.Join(cluster, ","))
		s.start(tb)
	}
	for _, s := range servers {
		s.ready(tb)
	}
	return servers
}

func (s *server) start(tb testing.TB) {
	s.Process = testbed.Start(tb, exec.Command(s.args[0], s.args[1:]...))
}

// ready waits until the cluster answers.
func (s *server) ready(tb testing.TB) {
	tb.Helper()
	c := connect(tb, s.addr)
	require.Eventually(tb, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "ready")
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
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

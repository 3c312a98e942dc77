package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// server is a member of an etcd cluster of the test's own.
type server struct {
	*testbed.Etcd
	addr string // of clients
}

// servers are clusters of one. Their leases may be as short as a second.
var servers = testbed.Pool[*server]{Start: startServer, Given: givenServer, Empty: (*server).empty}

// givenServer returns the server that is there already, if there is one.
func givenServer(tb testing.TB) (*server, bool) {
	given, ok := testbed.Given(tb, "LOCKS_ETCD_URL")
	if !ok {
		return nil, false
	}
	return &server{testbed.EtcdAt(tb, given.Host), given.Host}, true
}

// lendServer returns a server that is empty, and the test's own until the test ends. The test must
// not stop it.
func lendServer(tb testing.TB) *server {
	tb.Helper()
	return servers.Lend(tb)
}

// startServer runs a server that ends with the test, for tests that stop it.
func startServer(tb testing.TB) *server {
	tb.Helper()
	return startCluster(tb, "", 1)[0]
}

// watchedBy reports whether the server has n watches.
func (s *server) watchedBy(n int) bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.addr + "/metrics")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && strings.Contains(string(text), fmt.Sprintf("\netcd_debugging_mvcc_watcher_total %d\n", n))
}

// empty deletes all keys and leases. It waits for the end of watches, since tests count them.
func (s *server) empty() error {
	c, err := dial(s.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(background, 10*time.Second) // another one starts sooner
	defer cancel()
	if _, err := c.Delete(ctx, "\x00", clientv3.WithFromKey()); err != nil {
		return err
	}
	found, err := c.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range found.Leases {
		if _, err := c.Revoke(ctx, l.ID); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
	}
	for ; !s.watchedBy(0); time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// startCluster runs a cluster of n members until the test ends. The version is an argument of
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
		Endpoints: addrs, DialTimeout: long, Logger: zap.NewNop(), DialOptions: opts,
	})
}

// dialAs is dial for a user.
func dialAs(addr, user, password string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, DialTimeout: long, Logger: zap.NewNop(), Username: user, Password: password,
		DialOptions: etcdlock.DialOptions(),
	})
}

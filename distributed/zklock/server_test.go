package zklock

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/internal/test/testbed"
)

// Servers are lent to tests.
var Servers = testbed.Pool[*testbed.ZooKeeper]{
	Start: func(tb testing.TB) *testbed.ZooKeeper { return testbed.StartZooKeeper(tb) },
	Given: func(tb testing.TB) (*testbed.ZooKeeper, bool) {
		server, ok := testbed.Given(tb, "LOCKS_ZOOKEEPER_URL")
		if !ok {
			return nil, false
		}
		return testbed.ZooKeeperAt(tb, server.Host), true
	},
	Empty: empty,
}

// LendServer returns a server without nodes, which is the test's own until the test ends. The test
// must not stop it, nor count what it does.
func LendServer(tb testing.TB) *testbed.ZooKeeper {
	tb.Helper()
	return Servers.Lend(tb)
}

// empty deletes all nodes.
func empty(s *testbed.ZooKeeper) error {
	conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	limit := time.AfterFunc(10*time.Second, conn.Close) // another server starts sooner
	defer limit.Stop()
	var clear func(path string) error
	clear = func(path string) error {
		names, _, err := conn.Children(cmp.Or(path, "/"))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if node := path + "/" + name; node != "/zookeeper" {
				if err := clear(node); err != nil {
					return err
				}
				if err := conn.Delete(node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
			}
		}
		return nil
	}
	return clear("")
}

type silent struct{}

func (silent) Printf(string, ...any) {}

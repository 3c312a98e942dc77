package zklock_test

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"hold": holdUntilKilled, "buy": buy})
	flag.Parse()
	flag.Set("test.parallel", "8") // they wait more than they work
	goleak.VerifyTestMain(ending{m}, stays)
}

var stays = testbed.Children()

// ending ends the lent servers, and waits for the ZooKeeper client to end: without a server that
// takes a second.
type ending struct{ *testing.M }

func (m ending) Run() int {
	code := m.M.Run()
	zklock.Servers.End()
	for end := time.Now().Add(10 * time.Second); goleak.Find(stays) != nil && time.Now().Before(end); {
	}
	return code
}

var background = context.Background()

func as(o locks.Owner) context.Context { return locks.WithOwner(background, o) }

// patient are options with limits that only a hang reaches.
var patient = []zklock.Option{timeout(long), zklock.WithLeaseOptions(adaptertest.Patient)}

// open returns a client of addr that is closed with the test.
func open(tb testing.TB, addr string, opts ...zklock.Option) *zklock.Client {
	tb.Helper()
	return openAll(tb, []string{addr}, opts...)
}

func openAll(tb testing.TB, addrs []string, opts ...zklock.Option) *zklock.Client {
	tb.Helper()
	ctx, cancel := context.WithTimeout(background, testbed.Hang)
	defer cancel()
	c, err := zklock.New(ctx, addrs, append(slices.Clip(patient), opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, 5*time.Second)
		defer cancel()
		c.Close(ctx)
	})
	return c
}

func timeout(d time.Duration) zklock.Option { return zklock.WithSessionTimeout(d) }

// admin is a ZooKeeper client that inspects and changes nodes.
type admin struct {
	tb testing.TB
	*zk.Conn
}

type mute struct{}

func (mute) Printf(string, ...any) {}

func connect(tb testing.TB, addr string) admin {
	tb.Helper()
	conn, _, err := zk.Connect([]string{addr}, testbed.Hang, zk.WithLogger(mute{}))
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	_, _, err = conn.Exists("/") // starts its goroutines
	require.NoError(tb, err)
	return admin{tb, conn}
}

// list returns the children of a node, or none if the node does not exist.
func (a admin) list(dir string) []string {
	a.tb.Helper()
	names, _, err := a.Children(dir)
	if err == zk.ErrNoNode {
		return nil
	}
	require.NoError(a.tb, err)
	return names
}

// clear deletes all children of a node.
func (a admin) clear(dir string) {
	a.tb.Helper()
	for _, name := range a.list(dir) {
		if err := a.Delete(dir+"/"+name, -1); err != zk.ErrNoNode {
			require.NoError(a.tb, err)
		}
	}
}

// directory makes a node that is not a container. So the server does not remove it when it is
// empty, which it may do between any two requests of a test on a busy machine.
func (a admin) directory(path string) {
	a.tb.Helper()
	_, err := a.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(a.tb, err)
}

// eventually waits for something that will be.
func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	require.Eventually(tb, f, testbed.Hang, 5*time.Millisecond, what)
}

// queued waits until a directory has n nodes.
func (a admin) queued(dir string, n int) {
	a.tb.Helper()
	eventually(a.tb, "nodes in "+dir, func() bool { return len(a.list(dir)) == n })
}

// watched waits until n clients watch a node of s.
func (a admin) watched(s *testbed.ZooKeeper, path string, n int) {
	a.tb.Helper()
	eventually(a.tb, "watches of "+path, func() bool {
		_, watchers, _ := strings.Cut(s.Ask("wchp"), path+"\n")
		got := 0
		for line := range strings.Lines(watchers) {
			if !strings.HasPrefix(line, "\t") {
				break
			}
			got++
		}
		return got == n
	})
}

func read(l *lease.RWMutex) *lease.Mutex { return l.ReadMutex() }

func write(l *lease.RWMutex) *lease.Mutex { return l.WriteMutex() }

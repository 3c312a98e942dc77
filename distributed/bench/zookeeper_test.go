package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/distributed/zklock/ephemeral"
	"github.com/jucgo/locks/internal/test/testbed"
)

type mute struct{}

func (mute) Printf(string, ...any) {}

// connectZooKeeper returns a client that is closed with the test.
func connectZooKeeper(tb testing.TB, addr string) *zk.Conn {
	tb.Helper()
	c, _, err := zk.Connect([]string{addr}, zklock.DefaultSessionTimeout, zk.WithLogger(mute{}))
	must(tb, err)
	tb.Cleanup(c.Close)
	return c
}

func exists(c *zk.Conn) probe {
	return func(context.Context) error {
		_, _, err := c.Exists("/nothing")
		return err
	}
}

// inZooKeeper returns a kind of our locks.
func inZooKeeper(name string, lock func(c *zklock.Client, name string) locks.TryLocker) impl {
	return impl{name: name, open: func(tb testing.TB, addr, name string) contender {
		c, err := zklock.New(background, []string{addr})
		must(tb, err)
		tb.Cleanup(func() { c.Close(background) })
		return of(lock(c, "/"+name))
	}}
}

var zooKeeperKinds = []impl{
	inZooKeeper("zklock", (*zklock.Client).Locker),
	inZooKeeper("zklock-ephemeral", func(c *zklock.Client, name string) locks.TryLocker {
		return ephemeral.New(c, name)
	}),
	{name: "zk.Lock", open: func(tb testing.TB, addr, name string) contender {
		l := zk.NewLock(connectZooKeeper(tb, addr), "/"+name, zk.WorldACL(zk.PermAll))
		return contender{
			lock:   func(context.Context) error { return l.Lock() },
			unlock: func(context.Context) error { return l.Unlock() },
		}
	}},
}

// startZooKeeper runs a server until the end of b, and warms it up. Its compiler has done its work
// before anything is measured: the first lock would pay for it.
func startZooKeeper(b *testing.B) (addr string) {
	b.Helper()
	addr = testbed.StartZooKeeper(b).Addr()
	for _, k := range zooKeeperKinds {
		x := contest{hold: 100 * time.Microsecond}
		_, err := x.run(k.several(b, addr, 2), 1000)
		must(b, err)
	}
	return addr
}

// BenchmarkZooKeeperUncontended is a lock and an unlock that nobody else wants, compared with
// Exists.
func BenchmarkZooKeeperUncontended(b *testing.B) {
	addr := startZooKeeper(b)
	p := exists(connectZooKeeper(b, addr))
	b.Run("Exists", func(b *testing.B) {
		for b.Loop() {
			must(b, p(background))
		}
	})
	for _, k := range zooKeeperKinds {
		b.Run(k.name, func(b *testing.B) { uncontended(b, k.open(b, addr, fresh()), "Exists", p) })
	}
}

// BenchmarkZooKeeperHandover is the time from the call of a release to the next holder, who is
// another client.
func BenchmarkZooKeeperHandover(b *testing.B) {
	addr := startZooKeeper(b)
	handover(b, zooKeeperKinds, addr, "Exists", exists(connectZooKeeper(b, addr)), nil)
}

// figure returns one of the server's own.
func figure(tb testing.TB, z *testbed.ZooKeeper, name string) float64 {
	tb.Helper()
	text := ""
	await(tb, "mntr", func(context.Context) error {
		if text = z.Ask("mntr"); text == "" {
			return fmt.Errorf("no answer")
		}
		return nil
	})
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+"\t"); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			must(tb, err)
			return f
		}
	}
	tb.Fatalf("ZooKeeper does not tell %s", name)
	return 0
}

// watchers returns how many sessions watch each node.
func watchers(tb testing.TB, z *testbed.ZooKeeper) map[string]int {
	tb.Helper()
	sessions, node := map[string]int{}, ""
	for line := range strings.Lines(z.Ask("wchp")) {
		if strings.HasPrefix(line, "/") {
			node = strings.TrimSpace(line)
		} else if strings.HasPrefix(line, "\t0x") {
			sessions[node]++
		}
	}
	return sessions
}

// herd is the cost of a release while others wait, per release: how many watches go off, and how
// many packets the server receives and sends.
type herd struct{ wakeUps, received, sent float64 }

// crowd has n waiters at any time, each a client of its own, while the lock is released some
// times.
func crowd(tb testing.TB, z *testbed.ZooKeeper, k impl, n, releases int) herd {
	tb.Helper()
	var (
		over    atomic.Bool
		holding = make(chan struct{})
		release = make(chan struct{})
		errs    = make([]error, n+1)
		wg      sync.WaitGroup
		others  = watchers(tb, z) // of clients that were there before
	)
	for i, c := range k.several(tb, z.Addr(), n+1) {
		wg.Go(func() {
			for !over.Load() {
				if errs[i] = c.lock(background); errs[i] != nil {
					return
				}
				if !over.Load() {
					holding <- struct{}{}
					<-release
				}
				if errs[i] = c.unlock(background); errs[i] != nil {
					return
				}
			}
		})
	}
	<-holding
	watches := n
	if strings.HasPrefix(k.name, "zklock") { // the holder watches what it has
		watches++
	}
	settled := func() { // all the others watch: one node together, or each a node of its own
		await(tb, "waiters", func(context.Context) error {
			all, most := 0, 0
			for node, sessions := range watchers(tb, z) {
				if others[node] == 0 {
					all, most = all+sessions, max(most, sessions)
				}
			}
			if strings.HasSuffix(k.name, "ephemeral") {
				all = most
			}
			if all < watches {
				return fmt.Errorf("%v watches of %d waiters", all, n)
			}
			return nil
		})
	}
	now := func() (h herd) {
		for _, kind := range []string{"deleted", "changed", "children", "created"} {
			h.wakeUps += figure(tb, z, "zk_sum_node_"+kind+"_watch_count")
		}
		h.received, h.sent = figure(tb, z, "zk_packets_received"), figure(tb, z, "zk_packets_sent")
		return h
	}
	settled()
	before := now()
	for range releases {
		release <- struct{}{}
		<-holding
		settled()
	}
	after := now()
	over.Store(true)
	release <- struct{}{}
	wg.Wait()
	must(tb, errors.Join(errs...))
	each := func(a, b float64) float64 { return (b - a) / float64(releases) }
	return herd{
		wakeUps:  each(before.wakeUps, after.wakeUps),
		received: each(before.received, after.received),
		sent:     each(before.sent, after.sent),
	}
}

// BenchmarkZooKeeperHerd is the cost of a release while 100 clients wait. The packets include the
// packets of the next acquisition, and the benchmark's own, about 20.
func BenchmarkZooKeeperHerd(b *testing.B) {
	for _, k := range zooKeeperKinds {
		b.Run(k.name, func(b *testing.B) {
			h := crowd(b, testbed.StartZooKeeper(b), k, 100, b.N)
			b.ReportMetric(h.wakeUps, "wake-ups/op")
			b.ReportMetric(h.received, "packets-received/op")
			b.ReportMetric(h.sent, "packets-sent/op")
			b.ReportMetric(0, "ns/op")
		})
	}
}

package bench

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// startEtcd returns the address of an etcd that runs until the test ends.
func startEtcd(tb testing.TB) string {
	tb.Helper()
	path := testbed.Lookup(tb, "etcd")
	addr, peer := fmt.Sprint("127.0.0.1:", testbed.Port(tb)), fmt.Sprint("http://127.0.0.1:", testbed.Port(tb))
	testbed.Start(tb, exec.Command(path, "--name", "n", "--data-dir", tb.TempDir(), "--unsafe-no-fsync",
		"--logger", "zap", "--log-level", "fatal",
		"--listen-client-urls", "http://"+addr, "--advertise-client-urls", "http://"+addr,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "n="+peer))
	c := connectEtcd(tb, addr)
	await(tb, "etcd", get(c))
	return addr
}

// connectEtcd returns a client that is closed with the test.
func connectEtcd(tb testing.TB, addr string) *clientv3.Client {
	tb.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	must(tb, err)
	tb.Cleanup(func() { c.Close() })
	return c
}

func get(c *clientv3.Client) probe {
	return func(ctx context.Context) error {
		_, err := c.Get(ctx, "nothing")
		return err
	}
}

var etcdKinds = []impl{
	{name: "etcdlock", open: func(tb testing.TB, addr, name string) contender {
		c, err := etcdlock.New(connectEtcd(tb, addr))
		must(tb, err)
		tb.Cleanup(func() { c.Close(background) })
		return of(c.Mutex(name))
	}},
	{name: "concurrency.Mutex", open: func(tb testing.TB, addr, name string) contender {
		s, err := concurrency.NewSession(connectEtcd(tb, addr))
		must(tb, err)
		tb.Cleanup(func() { s.Close() })
		m := concurrency.NewMutex(s, name)
		return contender{lock: m.Lock, unlock: m.Unlock}
	}},
}

// BenchmarkEtcdUncontended is a lock and an unlock that nobody else wants, compared with a Get.
func BenchmarkEtcdUncontended(b *testing.B) {
	addr := startEtcd(b)
	p := get(connectEtcd(b, addr))
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			must(b, p(background))
		}
	})
	for _, k := range etcdKinds {
		b.Run(k.name, func(b *testing.B) { uncontended(b, k.open(b, addr, fresh()), "Get", p) })
	}
}

// alternate passes a lock from one of two contenders to the other and back, n times in all. Each
// has waited for the time wait when it gets the lock.
func alternate(two [2]contender, wait time.Duration, n int) (took []time.Duration, err error) {
	if err := two[0].lock(background); err != nil {
		return nil, err
	}
	type moment struct {
		at  time.Time
		err error
	}
	got := make(chan moment, 1)
	for i := range n {
		holder, next := two[i%2], two[1-i%2]
		go func() {
			err := next.lock(background)
			got <- moment{time.Now(), err}
		}()
		time.Sleep(wait)
		began := time.Now()
		if err := holder.unlock(background); err != nil {
			return nil, err
		}
		m := <-got
		if m.err != nil {
			return nil, m.err
		}
		took = append(took, m.at.Sub(began))
	}
	return took, two[n%2].unlock(background)
}

// BenchmarkEtcdHandover is the time from the call of a release to the next holder, who is another
// client, and has waited for a time.
func BenchmarkEtcdHandover(b *testing.B) {
	addr := startEtcd(b)
	p := get(connectEtcd(b, addr))
	for _, wait := range []time.Duration{5, 20, 50, 150} {
		wait *= time.Millisecond
		for _, k := range etcdKinds {
			b.Run(fmt.Sprintf("wait=%v/%s", wait, k.name), func(b *testing.B) {
				name := fresh()
				two := [2]contender{k.open(b, addr, name), k.open(b, addr, name)}
				trip := p.median(b, 100)
				b.ResetTimer()
				took, err := alternate(two, wait, b.N)
				b.StopTimer()
				must(b, err)
				half := quantile(took, 0.5)
				b.ReportMetric(float64(half), "p50-ns")
				b.ReportMetric(float64(quantile(took, 0.99)), "p99-ns")
				b.ReportMetric(float64(half)/float64(trip), "p50-x-Get")
			})
		}
	}
}

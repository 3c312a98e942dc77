package etcdlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease"
)

// BenchmarkGet is what one round trip costs.
func BenchmarkGet(b *testing.B) {
	c := connect(b, lendServer(b).addr)
	for b.Loop() {
		if _, err := c.Get(background, "it"); err != nil {
			b.Fatal(err)
		}
	}
}

// contender is a lock of one contender.
type contender struct {
	lock, unlock func(ctx context.Context) error
}

// kinds are our lock and etcd's own mutex.
var kinds = []struct {
	name string
	open func(b *testing.B, s *server) contender
}{
	{"etcdlock", func(b *testing.B, s *server) contender {
		l := open(b, connect(b, s.addr)).Mutex("it")
		o := locks.NewOwner() // another goroutine releases than takes
		return contender{
			func(ctx context.Context) error { return l.LockContext(locks.WithOwner(ctx, o)) },
			func(ctx context.Context) error { return l.UnlockContext(locks.WithOwner(ctx, o)) },
		}
	}},
	{"concurrency.Mutex", func(b *testing.B, s *server) contender {
		m := stock(b, s.addr, "it")
		return contender{m.Lock, m.Unlock}
	}},
}

func BenchmarkUncontended(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			c := k.open(b, lendServer(b))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.lock(background); err != nil {
					b.Fatal(err)
				}
				if err := c.unlock(background); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHandover has a lock change between two clients, of which the second has waited for a
// time. It reports the time from the call of the release to the return of the acquisition.
func BenchmarkHandover(b *testing.B) {
	for _, busy := range []bool{false, true} {
		for _, wait := range []time.Duration{5, 20, 50, 150} {
			wait *= time.Millisecond
			for _, k := range kinds {
				name := fmt.Sprintf("wait=%v/%s", wait, k.name)
				if busy { // others write to the server
					name = "busy/" + name
				}
				b.Run(name, func(b *testing.B) {
					s := lendServer(b)
					if busy {
						defer write(connect(b, s.addr))()
					}
					two := [2]contender{k.open(b, s), k.open(b, s)}
					var took []time.Duration
					require.NoError(b, two[0].lock(background))
					for i := 0; b.Loop(); i++ {
						holder, next := two[i%2], two[1-i%2]
						got := make(chan time.Time)
						go func() {
							if err := next.lock(background); err != nil {
								b.Error(err)
							}
							got <- time.Now()
						}()
						time.Sleep(wait)
						began := time.Now()
						if err := holder.unlock(background); err != nil {
							b.Fatal(err)
						}
						took = append(took, (<-got).Sub(began))
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
					b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
				})
			}
		}
	}
}

// write has somebody write until the function that it returns is called.
func write(c *clientv3.Client) (stop func()) {
	ctx, cancel := context.WithCancel(background)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			c.Put(ctx, "other", "")
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func BenchmarkReentry(b *testing.B) {
	l := open(b, connect(b, lendServer(b).addr)).Mutex("it")
	require.NoError(b, l.LockContext(background))
	defer l.UnlockContext(background)
	b.ReportAllocs()
	for b.Loop() {
		l.LockContext(background)
		l.UnlockContext(background)
	}
}

// BenchmarkCohort has eight goroutines of one process want one lock.
func BenchmarkCohort(b *testing.B) {
	l := open(b, connect(b, lendServer(b).addr), etcdlock.WithLeaseOptions(lease.WithMaxLocalHandoffs(64))).Mutex("it")
	b.SetParallelism(4) // of two processors
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if l.LockContext(background) == nil {
				l.UnlockContext(background)
			}
		}
	})
}

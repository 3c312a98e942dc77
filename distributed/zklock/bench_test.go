package zklock_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// warm acquires a lock often enough that the server's code is compiled before a measurement.
func warm(b *testing.B, s *testbed.ZooKeeper) {
	l := open(b, s.Addr()).Mutex("/warm")
	for range 2000 {
		if l.LockContext(background) != nil || l.UnlockContext(background) != nil {
			b.Fatal("the lock fails")
		}
	}
}

func BenchmarkExists(b *testing.B) {
	s := zklock.LendServer(b)
	warm(b, s)
	c := connect(b, s.Addr())
	b.ResetTimer()
	for b.Loop() {
		c.Exists("/it")
	}
}

func BenchmarkUncontended(b *testing.B) {
	s := zklock.LendServer(b)
	warm(b, s)
	for name, kind := range kinds {
		b.Run(name, func(b *testing.B) {
			l := kind.lock(open(b, s.Addr()), "/"+name)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.LockContext(background); err != nil {
					b.Fatal(err)
				}
				if err := l.UnlockContext(background); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("zk.Lock", func(b *testing.B) {
		l := zk.NewLock(connect(b, s.Addr()).Conn, "/stock", zk.WorldACL(zk.PermAll))
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Lock(); err != nil {
				b.Fatal(err)
			}
			l.Unlock()
		}
	})
}

func BenchmarkReentry(b *testing.B) {
	l := open(b, zklock.LendServer(b).Addr()).Mutex("it")
	if err := l.LockContext(background); err != nil {
		b.Fatal(err)
	}
	defer l.UnlockContext(background)
	b.ReportAllocs()
	for b.Loop() {
		l.LockContext(background)
		l.UnlockContext(background)
	}
}

// BenchmarkHandOver measures the time from the call of one client's unlock to the return of the
// other client's lock. It also measures the recipe of the ZooKeeper client.
func BenchmarkHandOver(b *testing.B) {
	s := zklock.LendServer(b)
	warm(b, s)
	type pair struct{ lock, unlock func() error }
	for name, make := range map[string]func(b *testing.B) pair{
		"mutex": func(b *testing.B) pair {
			l := open(b, s.Addr()).Mutex("/ours")
			ctx := adaptertest.Owner()
			return pair{func() error { return l.LockContext(ctx) }, func() error { return l.UnlockContext(ctx) }}
		},
		"zk.Lock": func(b *testing.B) pair {
			l := zk.NewLock(connect(b, s.Addr()).Conn, "/stock", zk.WorldACL(zk.PermAll))
			return pair{l.Lock, l.Unlock}
		},
	} {
		b.Run(name, func(b *testing.B) {
			two := [2]pair{make(b), make(b)}
			var mu sync.Mutex
			var released time.Time
			var took []time.Duration
			var wg sync.WaitGroup
			b.ResetTimer()
			for i, p := range two {
				wg.Go(func() {
					for range b.N {
						if err := p.lock(); err != nil {
							b.Error(i, err)
							return
						}
						mu.Lock()
						if !released.IsZero() {
							took = append(took, time.Since(released))
						}
						mu.Unlock()
						time.Sleep(5 * time.Millisecond) // the other client waits by then
						mu.Lock()
						released = time.Now()
						mu.Unlock()
						p.unlock()
					}
				})
			}
			wg.Wait()
			slices.Sort(took)
			if len(took) > 0 {
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			}
		})
	}
}

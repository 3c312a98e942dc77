package etcdlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// BenchmarkGet measures one round trip.
func BenchmarkGet(b *testing.B) {
	c := connect(b, lendServer(b).addr)
	for b.Loop() {
		if _, err := c.Get(background, "it"); err != nil {
			b.Fatal(err)
		}
	}
}

// stocked is etcd's own mutex as a [locks.Locker], without Lock and Unlock.
type stocked struct {
	locks.Locker
	mutex *concurrency.Mutex
}

func (s stocked) LockContext(ctx context.Context) error { return s.mutex.Lock(ctx) }

func (s stocked) UnlockContext(ctx context.Context) error { return s.mutex.Unlock(ctx) }

// kinds are our lock and etcd's own mutex.
var kinds = []struct {
	name string
	open func(b *testing.B, s *server) locks.Locker
}{
	{"etcdlock", func(b *testing.B, s *server) locks.Locker { return open(b, connect(b, s.addr)).Mutex("it") }},
	{"concurrency.Mutex", func(b *testing.B, s *server) locks.Locker { return stocked{mutex: stock(b, s.addr, "it")} }},
}

func BenchmarkUncontended(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			adaptertest.Uncontended(b, k.open(b, lendServer(b)))
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
					adaptertest.Handover(b, k.open(b, s), k.open(b, s), wait)
				})
			}
		}
	}
}

// write starts a goroutine that writes until the returned function is called.
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

package deadlock_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

// A kernel is a run of a program with a mistake of GoBench, in the order that deadlocks: each Sleep
// lets the other goroutines go as far as they can. Its locks have owners. Each wait ends with ctx.
//
// GoBench is a collection of mistakes of well-known Go programs: Yuan and others, "GoBench: A
// Benchmark Suite of Real-World Go Concurrency Bugs", CGO 2021.
type kernel struct{ ctx context.Context }

func (k kernel) got(err error) {
	if err != nil {
		runtime.Goexit()
	}
}

func (k kernel) lock(m *reentrant.Mutex)   { k.got(m.LockContext(k.ctx)) }
func (k kernel) write(m *rwlock.RWMutex)   { k.got(m.LockContext(k.ctx)) }
func (k kernel) read(m *rwlock.RWMutex)    { k.got(m.RLockContext(k.ctx)) }
func (k kernel) wait(c *condition.Cond)    { k.got(c.WaitContext(k.ctx)) }
func (k kernel) pause()                    { time.Sleep(time.Second) }
func (k kernel) send(c chan<- struct{})    { k.communicate(c, nil) }
func (k kernel) receive(c <-chan struct{}) { k.communicate(nil, c) }

func (k kernel) communicate(to chan<- struct{}, from <-chan struct{}) {
	select {
	case to <- struct{}{}:
	case <-from:
	case <-k.ctx.Done():
		runtime.Goexit()
	}
}

// orders acquires two locks in two orders.
func (k kernel) orders() {
	var a, b reentrant.Mutex
	for _, pair := range [][2]*reentrant.Mutex{{&a, &b}, {&b, &a}} {
		go func() {
			k.lock(pair[0])
			k.pause()
			k.lock(pair[1])
		}()
	}
}

// readsAgain reads under its own read lock, while a writer waits.
func (k kernel) readsAgain() {
	var m rwlock.RWMutex
	go func() {
		k.read(&m)
		k.pause()
		k.read(&m)
		m.RUnlock()
		m.RUnlock()
	}()
	go func() {
		k.write(&m)
		m.Unlock()
	}()
}

// locksAgain locks what it holds.
func (k kernel) locksAgain() {
	var m reentrant.Mutex
	go func() {
		k.lock(&m)
		k.lock(&m)
		m.Unlock()
		m.Unlock()
	}()
}

// leaves ends with the lock that another goroutine needs.
func (k kernel) leaves() {
	var m reentrant.Mutex
	go k.lock(&m)
	go func() {
		k.pause()
		k.lock(&m)
		m.Unlock()
	}()
}

// communicates waits for a channel under the lock that the other side needs.
func (k kernel) communicates() {
	var m reentrant.Mutex
	c := make(chan struct{})
	go func() {
		k.lock(&m)
		k.send(c)
		m.Unlock()
	}()
	go func() {
		k.pause()
		k.lock(&m)
		m.Unlock()
		k.receive(c)
	}()
}

var kernels = []struct {
	name string
	run  func(kernel)
	seen bool
}{
	{"cockroach 584", kernel.leaves, true},
	{"etcd 5509", func(k kernel) {
		var m rwlock.RWMutex
		go k.read(&m)
		go func() {
			k.pause()
			k.write(&m)
			m.Unlock()
		}()
	}, true},
	{"moby 7559", func(k kernel) {
		var m reentrant.Mutex
		go func() {
			k.lock(&m) // a failed dial goes on
			k.lock(&m)
			m.Unlock()
		}()
	}, false},
	{"moby 17176", kernel.leaves, true},
	{"cockroach 3710", kernel.readsAgain, false},
	{"cockroach 6181", kernel.readsAgain, false},
	{"cockroach 16167", kernel.readsAgain, false},
	{"kubernetes 62464", kernel.readsAgain, false},
	{"cockroach 7504", kernel.orders, true},
	{"cockroach 10214", kernel.orders, true},
	{"kubernetes 13135", kernel.orders, true},
	{"moby 4951", kernel.orders, true},
	{"cockroach 9935", kernel.locksAgain, false},
	{"etcd 10492", kernel.locksAgain, false},
	{"hugo 3251", func(k kernel) {
		var all rwlock.RWMutex
		var one reentrant.Mutex
		for i := range 2 {
			go func() {
				time.Sleep(time.Duration(i) * time.Second)
				k.write(&all)
				k.lock(&one)
				all.Unlock()
				time.Sleep(3 * time.Second)
				k.read(&all)
				one.Unlock()
				all.RUnlock()
			}()
		}
	}, true},
	{"kubernetes 58107", func(k kernel) {
		var workers rwlock.RWMutex
		var queue reentrant.Mutex
		filled := queue.NewCond()
		for i := range 2 {
			go func() {
				time.Sleep(time.Duration(2*i) * time.Second)
				k.read(&workers)
				k.lock(&queue)
				if i == 0 {
					k.wait(filled)
				} else {
					filled.Signal()
				}
				queue.Unlock()
				workers.RUnlock()
			}()
		}
		go func() {
			k.pause()
			k.write(&workers)
			workers.Unlock()
		}()
	}, false},
	{"moby 30408", func(k kernel) {
		var m reentrant.Mutex
		active := m.NewCond()
		go func() {
			k.lock(&m)
			k.wait(active) // a failure tells nobody
			m.Unlock()
		}()
	}, false},
	{"grpc 1460", kernel.communicates, false},
	{"kubernetes 6632", kernel.communicates, false},
	{"kubernetes 10182", kernel.communicates, false},
	{"moby 28462", kernel.communicates, false},
}

// The table of docs/guides/finding-mistakes.md says the same.
func TestCheckSeesTheOrdersAndTheOrphansOfGoBench(t *testing.T) {
	var seen []string
	for _, k := range kernels {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			test := new(tb)
			deadlock.Check(test)
			k.run(kernel{ctx})
			time.Sleep(time.Minute)
			if failures := test.end(); len(failures) > 0 {
				seen = append(seen, k.name)
			}
			cancel()
			synctest.Wait()
		})
	}
	var want []string
	for _, k := range kernels {
		if k.seen {
			want = append(want, k.name)
		}
	}
	require.Equal(t, want, seen)
	require.Len(t, slices.Compact(seen), 8)
}

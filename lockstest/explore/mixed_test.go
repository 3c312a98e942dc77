//go:build lockexplore

package explore

import (
	"slices"
	"time"

	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
)

// send sends, and gives up at the end of the run, so that a test leaves no goroutine.
func send(x *X, c chan<- int) {
	select {
	case c <- 1:
	case <-x.Context().Done():
	}
}

// receive receives, and gives up at the end of the run.
func receive(x *X, c <-chan int) {
	select {
	case <-c:
	case <-x.Context().Done():
	}
}

// Mistakes that need a lock and a channel, and other mistakes without an order of two locks.
func init() {
	add("a value is sent under the lock that the receiver needs", Deadlock, func(x *X, right bool) {
		var m fair.Mutex
		c := make(chan int)
		x.Go("sends", func() {
			m.Lock()
			if right {
				m.Unlock()
			}
			send(x, c)
			if !right {
				m.Unlock()
			}
		})
		x.Go("receives", func() {
			m.Lock()
			m.Unlock()
			receive(x, c)
		})
	})
	add("a worker is awaited under the lock that it needs", Deadlock, func(x *X, right bool) {
		var m fair.RWMutex
		done := make(chan int)
		x.Go("works", func() {
			m.RLock()
			m.RUnlock()
			send(x, done)
		})
		x.Go("stops", func() {
			m.Lock()
			if right {
				m.Unlock()
			}
			receive(x, done)
			if !right {
				m.Unlock()
			}
		})
	})
	add("a permit is kept while another one is awaited", Deadlock, func(x *X, right bool) {
		s := semaphore.NewWeighted(2)
		for range 2 {
			x.Go("fetches", func() {
				_ = s.Acquire(x.Context(), 1)
				if right {
					s.Release(1)
				}
				_ = s.Acquire(x.Context(), 1)
				s.Release(1)
				if !right {
					s.Release(1)
				}
			})
		}
	})
	add("the locks of a map are acquired in its order", Deadlock, func(x *X, right bool) {
		all := map[int]*reentrant.Mutex{1: new(reentrant.Mutex), 2: new(reentrant.Mutex)}
		for range 2 {
			x.Go("locks all", func() {
				keys := []int{}
				for k := range all {
					keys = append(keys, k)
				}
				if right {
					slices.Sort(keys)
				}
				for _, k := range keys {
					all[k].Lock()
				}
				for _, k := range keys {
					all[k].Unlock()
				}
			})
		}
	})
	add("the signal comes before the wait, which does not look", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		ready := false
		x.Go("waits", func() {
			m.Lock()
			for !right || !ready {
				c.Wait()
				if ready {
					break
				}
			}
			m.Unlock()
		})
		x.Go("signals", func() {
			m.Lock()
			ready = true
			c.Signal()
			m.Unlock()
		})
	})
	add("two readers both wait to become the writer", Deadlock, func(x *X, right bool) {
		var m fair.RWMutex
		for range 2 {
			x.Go("reads and writes", func() {
				m.RLock()
				if right {
					m.RUnlock()
				}
				m.Lock()
				m.Unlock()
				if !right {
					m.RUnlock()
				}
			})
		}
	})
	add("an upgrade that fails keeps the read hold", Failure, func(x *X, right bool) {
		var m rwlock.RWMutex
		for range 2 {
			x.Go("upgrades", func() {
				m.RLock()
				if m.TryUpgrade() {
					m.Unlock()
				} else if right {
					m.RUnlock()
				}
			})
		}
		x.Wait()
		x.Check(m.TryLock(), "a reader has ended with its hold")
	})
	add("a queue is closed between the look and the send", Failure, func(x *X, right bool) {
		var m fair.BargingMutex
		closed, sent := false, 0
		x.Go("closes", func() {
			m.Lock()
			closed = true
			m.Unlock()
		})
		x.Go("sends", func() {
			m.Lock()
			open := !closed
			if !right {
				m.Unlock()
				m.Lock()
			}
			if open {
				x.Check(!closed, "sent to a closed queue")
				sent++
			}
			m.Unlock()
		})
	})
	add("two locks guard one counter", Failure, func(x *X, right bool) {
		var a, b fair.Mutex
		other := &b
		if right {
			other = &a
		}
		var n cas.Packed
		adds := func(m *fair.Mutex) func() {
			return func() {
				m.Lock()
				v, stamp := n.Load()
				n.Store(v+1, stamp)
				m.Unlock()
			}
		}
		x.Go("adds", adds(&a))
		x.Go("adds too", adds(other))
		x.Wait()
		v, _ := n.Load()
		x.Check(v == 2, "the counter is %d", v)
	})
	add("a timer takes back what the work has done", Failure, func(x *X, right bool) {
		var m fair.Mutex
		done, undone := false, false
		x.Go("works", func() {
			m.Lock()
			done = !undone || !right
			m.Unlock()
			m.Lock()
			x.Check(!done || !undone, "done and undone")
			m.Unlock()
		})
		x.Go("times out", func() {
			time.Sleep(time.Second)
			m.Lock()
			undone = !done || !right
			m.Unlock()
		})
	})
	add("a result is sent to a receiver that a timer has ended", Leak, func(x *X, right bool) {
		var m fair.Mutex
		result := make(chan int, map[bool]int{true: 1}[right])
		x.Go("computes", func() {
			m.Lock()
			m.Unlock()
			send(x, result)
		})
		x.Go("waits", func() { // the timer is waited for only if this goroutine runs first
			m.Lock()
			m.Unlock()
			select {
			case <-result:
			case <-time.After(time.Second):
			}
		})
	})
	add("three goroutines pass a turn that one of them drops", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		turns := [3]interface {
			Wait()
			Signal()
		}{m.NewCond(), m.NewCond(), m.NewCond()}
		turn := 0
		for i := range 3 {
			x.Go("takes its turn", func() {
				m.Lock()
				for turn != i {
					turns[i].Wait()
				}
				turn++
				if i < 2 && (right || i == 0) {
					turns[i+1].Signal()
				}
				m.Unlock()
			})
		}
	})

	// Of GoBench, like the programs of gobench_test.go.
	add("cockroach 3710: a queue asks for the read lock again", Deadlock, func(x *X, right bool) {
		var store fair.RWMutex
		var queue fair.Mutex
		x.Go("scans", func() {
			store.RLock()
			if right {
				store.RUnlock()
			}
			queue.Lock()
			store.RLock() // for the status
			store.RUnlock()
			queue.Unlock()
			if !right {
				store.RUnlock()
			}
		})
		x.Go("processes", func() {
			store.Lock()
			store.Unlock()
		})
	})
	add("etcd 10492: a checkpoint is made under its own lock", Deadlock, func(x *X, right bool) {
		var lessor fair.RWMutex
		checkpoint := func() {
			lessor.Lock()
			lessor.Unlock()
		}
		x.Go("renews", func() {
			lessor.Lock()
			if right {
				lessor.Unlock()
			}
			checkpoint()
			if !right {
				lessor.Unlock()
			}
		})
	})
	add("moby 7559: a failed dial goes on with the lock", Deadlock, func(x *X, right bool) {
		var track fair.Mutex
		x.Go("proxies", func() {
			for dial := range 2 {
				track.Lock()
				if failed := dial == 0; failed {
					if right {
						track.Unlock()
					}
					continue
				}
				track.Unlock()
			}
		})
	})
	add("moby 17176: a removal that is refused keeps the lock", Deadlock, func(x *X, right bool) {
		var devices fair.Mutex
		busy := false
		x.Go("activates", func() {
			devices.Lock()
			busy = true
			devices.Unlock()
		})
		for range 2 {
			x.Go("removes", func() {
				devices.Lock()
				if busy {
					if right {
						devices.Unlock()
					}
					return
				}
				devices.Unlock()
			})
		}
	})
	add("kubernetes 62464: a policy reads while it reads", Deadlock, func(x *X, right bool) {
		var state fair.RWMutex
		get := func() {
			state.RLock()
			state.RUnlock()
		}
		x.Go("reconciles", func() {
			state.RLock()
			if right {
				state.RUnlock()
			}
			get()
			if !right {
				state.RUnlock()
			}
		})
		x.Go("removes a container", func() {
			get()
			state.Lock()
			state.Unlock()
		})
	})
	add("kubernetes 10182: a status is sent under the lock of the statuses", Deadlock, func(x *X, right bool) {
		var statuses fair.RWMutex
		c := make(chan int)
		x.Go("syncs", func() {
			for range 2 {
				receive(x, c)
				statuses.Lock()
				statuses.Unlock()
			}
		})
		for range 2 {
			x.Go("sets", func() {
				statuses.Lock()
				if right {
					statuses.Unlock()
				}
				send(x, c)
				if !right {
					statuses.Unlock()
				}
			})
		}
	})
	add("grpc 1460: a stream wakes the keeper under its lock", Deadlock, func(x *X, right bool) {
		var transport fair.Mutex
		awaken := make(chan int)
		streams, sleeps := 0, false
		x.Go("keeps alive", func() {
			transport.Lock()
			sleeps = streams == 0
			dormant := sleeps
			if right || !dormant {
				transport.Unlock()
			}
			if dormant {
				receive(x, awaken)
				if !right {
					transport.Unlock()
				}
			}
		})
		x.Go("opens a stream", func() {
			transport.Lock()
			streams++
			wakes := sleeps
			transport.Unlock()
			if wakes {
				send(x, awaken)
			}
		})
	})
	add("kubernetes 6632: a reset waits for the writer of frames", Deadlock, func(x *X, right bool) {
		var writes fair.Mutex
		resets := make(chan int)
		x.Go("watches", func() {
			receive(x, resets)
			writes.Lock()
			writes.Unlock()
		})
		x.Go("writes a frame", func() {
			writes.Lock()
			if right {
				writes.Unlock()
			}
			send(x, resets)
			send(x, resets)
			if !right {
				writes.Unlock()
			}
		})
		x.Go("watches too", func() {
			writes.Lock()
			writes.Unlock()
			receive(x, resets)
		})
	})
	add("moby 28462: the monitor is stopped under the lock of its container", Deadlock, func(x *X, right bool) {
		var container fair.Mutex
		stop := make(chan int)
		x.Go("monitors", func() {
			container.Lock()
			container.Unlock()
			receive(x, stop)
		})
		x.Go("stops", func() {
			container.Lock()
			if right {
				container.Unlock()
			}
			send(x, stop)
			if !right {
				container.Unlock()
			}
		})
	})
}

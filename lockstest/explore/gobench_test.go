//go:build lockexplore

package explore

import (
	"errors"

	"github.com/jucgo/locks/fair"
)

// Mistakes of GoBench that need only locks and conditions. Each program has the number of its
// mistake there, and was written anew from the description. GoBench is a collection of mistakes
// of well-known Go programs: Yuan and others, "GoBench: A Benchmark Suite of Real-World Go
// Concurrency Bugs", CGO 2021, https://github.com/timmyyuan/gobench.
func init() {
	add("cockroach 584: a loop ends with the lock held", Deadlock, func(x *X, right bool) {
		var m fair.Mutex
		closed := false
		x.Go("closes", func() {
			m.Lock()
			closed = true
			m.Unlock()
		})
		for range 2 {
			x.Go("manages", func() {
				for range 2 {
					m.Lock()
					if closed {
						if right {
							m.Unlock()
						}
						break
					}
					m.Unlock()
				}
			})
		}
	})
	add("cockroach 6181: a cache is printed under its own lock", Deadlock, func(x *X, right bool) {
		var cache fair.RWMutex
		text := func() string {
			cache.RLock()
			defer cache.RUnlock()
			return "entries"
		}
		for range 2 {
			x.Go("looks up", func() {
				cache.RLock()
				if !right {
					_ = text()
				}
				cache.RUnlock()
				cache.Lock()
				cache.Unlock()
			})
		}
	})
	add("cockroach 7504: a lease and the cache of names in two orders", Deadlock, func(x *X, right bool) {
		var lease, names fair.Mutex
		x.Go("acquires by name", func() {
			names.Lock()
			lease.Lock()
			lease.Unlock()
			names.Unlock()
		})
		x.Go("releases", func() {
			lease.Lock()
			if right {
				lease.Unlock()
			}
			names.Lock()
			names.Unlock()
			if !right {
				lease.Unlock()
			}
		})
	})
	add("cockroach 9935: a failure under the lock logs with it", Deadlock, func(x *X, right bool) {
		var m fair.Mutex
		full := false
		exit := func() {
			m.Lock()
			m.Unlock()
		}
		x.Go("fills the disk", func() {
			m.Lock()
			full = true
			m.Unlock()
		})
		x.Go("logs", func() {
			m.Lock()
			failed := full
			if failed && !right {
				exit()
			}
			m.Unlock()
			if failed && right {
				exit()
			}
		})
	})
	add("cockroach 10214: heartbeats are sent under their lock", Deadlock, func(x *X, right bool) {
		var heartbeats, raft fair.Mutex
		x.Go("sends", func() {
			heartbeats.Lock()
			if right {
				heartbeats.Unlock()
			}
			raft.Lock() // to report a replica out of reach
			raft.Unlock()
			if !right {
				heartbeats.Unlock()
			}
		})
		x.Go("ticks", func() {
			raft.Lock()
			heartbeats.Lock()
			heartbeats.Unlock()
			raft.Unlock()
		})
	})
	add("cockroach 16167: a statement reads the configuration twice", Deadlock, func(x *X, right bool) {
		var config fair.RWMutex
		x.Go("executes", func() {
			config.RLock()
			if right {
				config.RUnlock()
			}
			config.RLock() // to prepare
			config.RUnlock()
			if !right {
				config.RUnlock()
			}
		})
		x.Go("updates", func() {
			config.Lock()
			config.Unlock()
		})
	})
	add("etcd 5509: a closed client is left read-locked", Deadlock, func(x *X, right bool) {
		var m fair.RWMutex
		closed := false
		x.Go("gets", func() {
			m.RLock()
			if closed && !right {
				return
			}
			m.RUnlock()
		})
		x.Go("closes", func() {
			m.Lock()
			closed = true
			m.Unlock()
			m.Lock()
			m.Unlock()
		})
	})
	add("hugo 3251: a lock of one address is awaited under that of all", Deadlock, func(x *X, right bool) {
		var all fair.RWMutex
		byURL := map[string]*fair.Mutex{}
		for range 2 {
			x.Go("gets", func() {
				all.Lock()
				m := byURL["u"]
				if m == nil {
					m = new(fair.Mutex)
					byURL["u"] = m
				}
				if right {
					all.Unlock()
					m.Lock()
				} else {
					m.Lock()
					all.Unlock()
				}
				all.RLock()
				byURL["u"].Unlock()
				all.RUnlock()
			})
		}
	})
	add("kubernetes 13135: events are handled under the lock of the cache", Deadlock, func(x *X, right bool) {
		var cacher, cache fair.Mutex
		x.Go("starts", func() {
			cacher.Lock()
			cache.Lock()
			cacher.Unlock() // the cache has been replaced
			cache.Unlock()
		})
		x.Go("adds", func() {
			cache.Lock()
			if right {
				cache.Unlock()
			}
			cacher.Lock() // to handle the event
			cacher.Unlock()
			if !right {
				cache.Unlock()
			}
		})
	})
	add("kubernetes 58107: workers wait for items with a read lock", Deadlock, func(x *X, right bool) {
		var workers fair.RWMutex
		var queue fair.Mutex
		filled := queue.NewCond()
		items := 0
		x.Go("works", func() {
			workers.RLock()
			if right {
				workers.RUnlock()
			}
			queue.Lock()
			for items == 0 {
				filled.Wait()
			}
			items--
			queue.Unlock()
			if !right {
				workers.RUnlock()
			}
		})
		x.Go("syncs", func() {
			workers.Lock()
			workers.Unlock()
		})
		x.Go("works and puts", func() {
			workers.RLock()
			queue.Lock()
			items++
			filled.Signal()
			queue.Unlock()
			workers.RUnlock()
		})
	})
	add("moby 4951: a device is locked while its set is locked again", Deadlock, func(x *X, right bool) {
		var set, device fair.Mutex
		for range 2 {
			x.Go("deletes", func() {
				if right {
					device.Lock()
					set.Lock()
				} else {
					set.Lock()
					device.Lock()
				}
				set.Unlock() // to wait for the device
				set.Lock()
				if right {
					set.Unlock()
					device.Unlock()
				} else {
					device.Unlock()
					set.Unlock()
				}
			})
		}
	})
	add("moby 30408: a failed activation tells no waiter", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		ended := m.NewCond()
		active := false
		var failed error
		x.Go("waits", func() {
			m.Lock()
			for !active && failed == nil {
				ended.Wait()
			}
			m.Unlock()
		})
		x.Go("activates", func() {
			m.Lock()
			failed = errors.New("no answer")
			if right {
				ended.Broadcast()
			}
			m.Unlock()
		})
	})
}

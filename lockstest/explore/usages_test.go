//go:build lockexplore

package explore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/singleton"
)

// Mistakes with the tools that programs use beside locks: permits, keys, several waiters,
// conversions of stamps, several locks at once, singletons, contexts, timers, groups, and select.

// enters is a section for one goroutine at a time.
func enters(x *X, inside *atomic.Int32) {
	inside.Add(1)
	x.Step()
	x.Check(inside.Load() == 1, "two are inside")
	inside.Add(-1)
}

func init() {
	background := context.Background()
	add("two writers take the permits of all readers one by one", Deadlock, func(x *X, right bool) {
		s := semaphore.NewWeighted(2)
		for range 2 {
			x.Go("writes", func() {
				if right {
					_ = s.Acquire(background, 2)
				} else {
					_ = s.Acquire(background, 1)
					_ = s.Acquire(background, 1)
				}
				s.Release(2)
			})
		}
	})
	add("a failure keeps a permit", Deadlock, func(x *X, right bool) {
		s := semaphore.NewWeighted(2)
		var full atomic.Bool
		x.Go("fails", func() {
			_ = s.Acquire(background, 1)
			if full.Load() {
				if right {
					s.Release(1)
				}
				return
			}
			s.Release(1)
		})
		x.Go("fills", func() {
			_ = s.Acquire(background, 1)
			full.Store(true)
			s.Release(1)
			_ = s.Acquire(background, 2)
			s.Release(2)
		})
	})
	add("a permit that was not given is used", Failure, func(x *X, right bool) {
		s := semaphore.NewWeighted(1)
		var inside atomic.Int32
		x.Go("takes", func() {
			_ = s.Acquire(background, 1)
			enters(x, &inside)
			s.Release(1)
		})
		x.Go("tries", func() {
			ok := s.TryAcquire(1)
			if !ok && right {
				return
			}
			enters(x, &inside)
			if ok {
				s.Release(1)
			}
		})
	})
	add("the lock of a key is awaited under that of all keys", Deadlock, func(x *X, right bool) {
		var all fair.Mutex
		keys := keyed.New[string](locks.FIFO)
		x.Go("removes", func() {
			all.Lock()
			if right {
				all.Unlock()
			}
			keys.Of("a").Lock()
			keys.Of("a").Unlock()
			if !right {
				all.Unlock()
			}
		})
		x.Go("adds", func() {
			keys.Of("a").Lock()
			all.Lock()
			all.Unlock()
			keys.Of("a").Unlock()
		})
	})
	add("the key of an entry changes while its lock is held", Panic, func(x *X, right bool) {
		keys := keyed.New[string](locks.FIFO)
		var m fair.Mutex
		name := "a"
		x.Go("uses", func() {
			m.Lock()
			key := name
			m.Unlock()
			keys.Of(key).Lock()
			if !right {
				m.Lock()
				key = name
				m.Unlock()
			}
			keys.Of(key).Unlock()
		})
		x.Go("renames", func() {
			m.Lock()
			name = "b"
			m.Unlock()
		})
	})
	add("one signal for three that wait for the same", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		open := false
		for range 3 {
			x.Go("waits", func() {
				m.Lock()
				for !open {
					c.Wait()
				}
				m.Unlock()
			})
		}
		x.Go("opens", func() {
			m.Lock()
			if open = true; right {
				c.Broadcast()
			} else {
				c.Signal()
			}
			m.Unlock()
		})
	})
	add("two items come with one signal", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		items := 0
		for range 2 {
			x.Go("takes", func() {
				m.Lock()
				for items == 0 {
					c.Wait()
				}
				items--
				m.Unlock()
			})
		}
		x.Go("puts", func() {
			m.Lock()
			items += 2
			c.Signal()
			if right {
				c.Signal()
			}
			m.Unlock()
		})
	})
	add("a waiter that is not needed any more keeps its signal", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		items, gone := 0, false
		x.Go("gives up", func() {
			m.Lock()
			for items == 0 && !gone {
				c.Wait()
			}
			if right {
				c.Signal()
			}
			m.Unlock()
		})
		x.Go("takes", func() {
			m.Lock()
			for items == 0 {
				c.Wait()
			}
			if right {
				c.Signal()
			}
			m.Unlock()
		})
		x.Go("puts", func() {
			m.Lock()
			gone = true
			items++
			c.Signal()
			m.Unlock()
		})
	})
	add("the last reader wakes only one of the writers that share a condition with readers", LostWakeup,
		func(x *X, right bool) {
			var m fair.Mutex
			c := m.NewCond()
			readers, writing := 1, false
			enter := func(c *condition.Cond, blocked func() bool, then func()) {
				m.Lock()
				for blocked() {
					c.Wait()
				}
				then()
				m.Unlock()
			}
			x.Go("writes", func() {
				enter(c, func() bool { return readers > 0 || writing }, func() { writing = true })
				m.Lock()
				writing = false
				if right {
					c.Broadcast()
				}
				m.Unlock()
			})
			x.Go("reads", func() {
				enter(c, func() bool { return writing }, func() { readers++ })
				m.Lock()
				if readers--; readers == 0 {
					c.Broadcast()
				}
				m.Unlock()
			})
			x.Go("leaves", func() {
				m.Lock()
				if readers--; readers == 0 {
					c.Broadcast()
				}
				m.Unlock()
			})
		})
	add("a stamp that a conversion did not give is unlocked", Panic, func(x *X, right bool) {
		var l rwlock.StampedLock
		for range 2 {
			x.Go("converts", func() {
				st := l.ReadLock()
				if w := l.TryConvertToWriteLock(st); w != 0 || !right {
					st = w
				}
				l.Unlock(st)
			})
		}
	})
	add("what an optimistic read has seen is used after its conversion failed", Failure, func(x *X, right bool) {
		var l rwlock.StampedLock
		var a, b atomic.Int32
		x.Go("reads", func() {
			st := l.TryOptimisticRead()
			first := a.Load()
			x.Step()
			held := l.TryConvertToReadLock(st)
			if held == 0 {
				held = l.ReadLock()
				if right {
					first = a.Load()
				}
			}
			x.Check(first == b.Load(), "%d and %d", first, b.Load())
			l.UnlockRead(held)
		})
		x.Go("writes", func() {
			st := l.WriteLock()
			a.Add(1)
			b.Add(1)
			l.UnlockWrite(st)
		})
	})
	add("a lock is acquired inside of several and around them", Deadlock, func(x *X, right bool) {
		var a, b, c reentrant.Mutex
		both := locks.Multi(&a, &b)
		x.Go("inside", func() {
			_ = both.LockContext(background)
			c.Lock()
			c.Unlock()
			_ = both.UnlockContext(background)
		})
		x.Go("around", func() {
			if !right {
				c.Lock()
			}
			_ = both.LockContext(background)
			_ = both.UnlockContext(background)
			if !right {
				c.Unlock()
			}
		})
	})
	add("several locks that a context has refused are used", Failure, func(x *X, right bool) {
		var a, b reentrant.Mutex
		var inside atomic.Int32
		ctx, cancel := context.WithCancel(x.Context())
		x.Go("locks", func() {
			a.Lock()
			enters(x, &inside)
			a.Unlock()
		})
		x.Go("locks both", func() {
			both := locks.Multi(&a, &b)
			if err := both.LockContext(ctx); err != nil {
				if !right {
					enters(x, &inside)
				}
				return
			}
			enters(x, &inside)
			_ = both.UnlockContext(background)
		})
		x.Go("cancels", cancel)
	})
	add("two singletons need each other", Deadlock, func(x *X, right bool) {
		var a, b *singleton.Lazy[int]
		a = singleton.New(func() (int, error) { return b.Get() })
		b = singleton.New(func() (int, error) {
			if right {
				return 1, nil
			}
			return a.Get()
		})
		x.Go("a", func() { _, _ = a.Get() })
		x.Go("b", func() { _, _ = b.Get() })
	})
	add("a singleton is made under the lock that it needs", Deadlock, func(x *X, right bool) {
		var m fair.Mutex
		value := singleton.New(func() (int, error) {
			m.Lock()
			defer m.Unlock()
			return 1, nil
		})
		x.Go("makes", func() { value.MustGet() })
		x.Go("uses", func() {
			if right {
				value.MustGet()
			}
			m.Lock()
			value.MustGet()
			m.Unlock()
		})
	})
	add("a waiter that was cancelled stays counted", Failure, func(x *X, right bool) {
		var m, counts fair.Mutex
		waiting := 0
		count := func(n int) {
			counts.Lock()
			waiting += n
			counts.Unlock()
		}
		ctx, cancel := context.WithCancel(x.Context())
		x.Go("holds", func() {
			m.Lock()
			cancel()
			m.Unlock()
		})
		x.Go("waits", func() {
			count(1)
			if err := m.LockContext(ctx); err != nil {
				if right {
					count(-1)
				}
				return
			}
			count(-1)
			m.Unlock()
		})
		x.Wait()
		x.Check(waiting == 0, "%d wait", waiting)
	})
	add("the end of a context is awaited under the lock that its canceller needs", Deadlock, func(x *X, right bool) {
		var m fair.Mutex
		ctx, cancel := context.WithCancel(x.Context())
		x.Go("waits", func() {
			m.Lock()
			if right {
				m.Unlock()
			}
			<-ctx.Done()
			if !right {
				m.Unlock()
			}
		})
		x.Go("cancels", func() {
			m.Lock()
			cancel()
			m.Unlock()
		})
	})
	add("the function of a timer is awaited under its lock", Deadlock, func(x *X, right bool) {
		var m fair.Mutex
		fired := make(chan int)
		timer := time.AfterFunc(time.Second, func() {
			m.Lock()
			m.Unlock()
			close(fired)
		})
		m.Lock()
		x.Step()
		stopped := timer.Stop()
		if right {
			m.Unlock()
		}
		if !stopped {
			receive(x, fired)
		}
		if !right {
			m.Unlock()
		}
	})
	add("a group is waited for before it is added to", Failure, func(x *X, right bool) {
		var m fair.Mutex
		var group sync.WaitGroup
		n := 0
		if right {
			group.Add(1)
		}
		x.Go("works", func() {
			if !right {
				group.Add(1)
			}
			defer group.Done()
			m.Lock()
			n++
			m.Unlock()
		})
		group.Wait()
		m.Lock()
		x.Check(n == 1, "n is %d", n)
		m.Unlock()
	})
	add("a worker that finds nothing is not done", Leak, func(x *X, right bool) {
		var m fair.Mutex
		var group sync.WaitGroup
		items := 1
		group.Add(2)
		for range 2 {
			x.Go("works", func() {
				m.Lock()
				defer m.Unlock()
				if items == 0 && !right {
					return
				}
				items = 0
				group.Done()
			})
		}
		stop := context.AfterFunc(x.Context(), group.Done) // so that no goroutine is left after the run
		group.Wait()
		stop()
	})
	add("a task of a full group starts another one under its lock", Deadlock, func(x *X, right bool) {
		var m fair.Mutex
		var group errgroup.Group
		group.SetLimit(2)
		task := func() error {
			m.Lock()
			defer m.Unlock()
			if !right {
				group.Go(func() error { return nil })
			}
			return nil
		}
		group.Go(task)
		group.Go(task)
		_ = group.Wait()
	})
	add("a task that its group has cancelled keeps its permit", Failure, func(x *X, right bool) {
		s := semaphore.NewWeighted(1)
		group, ctx := errgroup.WithContext(x.Context())
		group.Go(func() error {
			x.Step()
			return errors.New("failed")
		})
		group.Go(func() error {
			if err := s.Acquire(background, 1); err != nil {
				return err
			}
			x.Step()
			if err := ctx.Err(); err != nil && !right {
				return err
			}
			s.Release(1)
			return nil
		})
		_ = group.Wait()
		x.Check(s.Available() == 1, "%d permits", s.Available())
	})
	add("a consumer that is told to stop drops an item", Failure, func(x *X, right bool) {
		items, quit := make(chan int, 1), make(chan struct{})
		got := 0
		x.Go("consumes", func() {
			for open := true; open; {
				x.Select(
					Receive(items, func(int, bool) { got++ }),
					Receive(quit, func(struct{}, bool) { open = false }))
			}
			if right {
				x.Select(Receive(items, func(int, bool) { got++ }), Default(nil))
			}
		})
		x.Go("produces", func() {
			items <- 1
			close(quit)
		})
		x.Wait()
		x.Check(got == 1, "%d items", got)
	})
	add("a value is dropped, since its receiver is late", Leak, func(x *X, right bool) {
		var m fair.Mutex
		values := make(chan int, map[bool]int{true: 1}[right])
		x.Go("receives", func() {
			m.Lock()
			m.Unlock()
			receive(x, values)
		})
		x.Go("offers", func() {
			x.Select(Send(values, 1, nil), Default(nil))
		})
	})
}

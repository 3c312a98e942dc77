//go:build lockexplore

package explore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/spin"
	"github.com/jucgo/locks/synchronizer"
)

// A pair is a program with a known mistake, and the same program without it.
type pair struct {
	name  string
	kind  Kind
	wrong func(x *X)
	right func(x *X)
	opts  []Option
}

// most is how many schedules a search of the corpus may take to find a mistake.
const most = 1000

var corpus []pair

// add adds a program. Its parameter right leaves the mistake out.
func add(name string, kind Kind, f func(x *X, right bool), opts ...Option) {
	corpus = append(corpus, pair{name, kind, func(x *X) { f(x, false) }, func(x *X) { f(x, true) }, opts})
}

func init() {
	add("the counter is read in one hold and written in another", Failure, func(x *X, right bool) {
		var m fair.Mutex
		n := 0
		for range 2 {
			x.Go("adds", func() {
				m.Lock()
				was := n
				if !right {
					m.Unlock()
					m.Lock()
				}
				n = was + 1
				m.Unlock()
			})
		}
		x.Wait()
		x.Check(n == 2, "n is %d", n)
	})
	add("the packed counter is stored and not swapped", Failure, func(x *X, right bool) {
		var p cas.Packed
		for range 2 {
			x.Go("adds", func() {
				for {
					n, stamp := p.Load()
					if !right {
						p.Store(n+1, stamp)
						return
					}
					if p.CompareAndSwap(n, n+1, stamp, stamp) {
						return
					}
				}
			})
		}
		x.Wait()
		n, _ := p.Load()
		x.Check(n == 2, "n is %d", n)
	})
	add("two fair mutexes in two orders", Deadlock, func(x *X, right bool) {
		var a, b fair.Mutex
		twoOrders(x, right, &a, &b)
	})
	add("two barging mutexes in two orders", Deadlock, func(x *X, right bool) {
		var a, b fair.BargingMutex
		twoOrders(x, right, &a, &b)
	})
	add("two reentrant mutexes in two orders", Deadlock, func(x *X, right bool) {
		var a, b reentrant.Mutex
		twoOrders(x, right, &a, &b)
	})
	add("two write locks in two orders", Deadlock, func(x *X, right bool) {
		var a, b rwlock.RWMutex
		twoOrders(x, right, &a, &b)
	})
	add("two spin locks in two orders", Deadlock, func(x *X, right bool) {
		var a, b spin.Mutex
		twoOrders(x, right, &a, &b)
	})
	add("two queue locks in two orders", Deadlock, func(x *X, right bool) {
		var a, b spin.MCS
		twoOrders(x, right, &a, &b)
	})
	add("two ticket locks in two orders", Deadlock, func(x *X, right bool) {
		var a, b spin.Ticket
		twoOrders(x, right, &a, &b)
	})
	add("two keys in two orders", Deadlock, func(x *X, right bool) {
		set := keyed.New[string](locks.FIFO)
		a, b := set.Of("a"), set.Of("b")
		twoOrders(x, right, a, b)
	})
	add("two semaphores in two orders", Deadlock, func(x *X, right bool) {
		a, b := &permit{semaphore.NewWeighted(1)}, &permit{semaphore.NewWeighted(1)}
		twoOrders(x, right, a, b)
	})
	add("two synchronizers in two orders", Deadlock, func(x *X, right bool) {
		a, b := new(synchronizer.Sync[bit]), new(synchronizer.Sync[bit])
		twoOrders(x, right, &byRules{a}, &byRules{b})
	})
	add("permits are counted before they are taken", Failure, func(x *X, right bool) {
		s := semaphore.NewWeighted(1)
		for range 2 {
			x.Go("takes", func() {
				if right {
					if s.TryAcquire(1) {
						s.Release(1)
					}
					return
				}
				if s.Available() > 0 {
					x.Check(s.TryAcquire(1), "the permit is gone")
				}
			})
		}
	})
	add("transfers lock the accounts as they come", Deadlock, func(x *X, right bool) {
		var a, b reentrant.Mutex
		transfer := func(from, to *reentrant.Mutex) {
			if right {
				err := locks.Do(x.Context(), locks.Multi(from, to), func(context.Context) error { return nil })
				x.Check(err == nil, "%v", err)
				return
			}
			x.Check(from.LockContext(x.Context()) == nil, "from")
			x.Check(to.LockContext(x.Context()) == nil, "to")
			x.Check(to.UnlockContext(x.Context()) == nil, "to")
			x.Check(from.UnlockContext(x.Context()) == nil, "from")
		}
		x.Go("there", func() { transfer(&a, &b) })
		x.Go("back", func() { transfer(&b, &a) })
	})
	add("three philosophers take the left fork first", Deadlock, func(x *X, right bool) {
		var forks [3]fair.Mutex
		for i := range forks {
			first, second := &forks[i], &forks[(i+1)%3]
			if right && i == 2 {
				first, second = second, first
			}
			x.Go("philosopher", func() {
				first.Lock()
				second.Lock()
				second.Unlock()
				first.Unlock()
			})
		}
	})
	add("the waiter looks before it locks", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		var done cas.Packed
		is := func() bool { n, _ := done.Load(); return n == 1 }
		x.Go("waits", func() {
			if !right && is() {
				return
			}
			m.Lock()
			if !right || !is() {
				c.Wait()
			}
			m.Unlock()
		})
		x.Go("signals", func() {
			m.Lock()
			done.Store(1, 0)
			c.Signal()
			m.Unlock()
		})
	})
	add("if instead of for around a wait", Failure, func(x *X, right bool) {
		var m fair.BargingMutex
		c := m.NewCond()
		items := 0
		for range 2 {
			x.Go("takes", func() {
				m.Lock()
				defer m.Unlock()
				if items == 0 {
					c.WaitFor(time.Second)
				}
				for right && items == 0 {
					if c.WaitFor(time.Second) <= 0 {
						return
					}
				}
				items--
				x.Check(items >= 0, "took from nothing")
			})
		}
		x.Go("puts", func() {
			m.Lock()
			items++
			c.Broadcast()
			m.Unlock()
		})
	})
	add("one signal for two kinds of waiters", LostWakeup, func(x *X, right bool) {
		var m reentrant.Mutex
		c := m.NewCond()
		full := false
		put := func() {
			m.Lock()
			for full {
				c.Wait()
			}
			full = true
			if right {
				c.Broadcast()
			} else {
				c.Signal()
			}
			m.Unlock()
		}
		take := func() {
			m.Lock()
			for !full {
				c.Wait()
			}
			full = false
			if right {
				c.Broadcast()
			} else {
				c.Signal()
			}
			m.Unlock()
		}
		x.Go("puts", put)
		x.Go("puts", put)
		x.Go("takes", take)
		x.Go("takes", take)
	}, Preemptions(2), Schedules(20_000))
	add("the signal comes without the lock", Panic, func(x *X, right bool) {
		var m reentrant.Mutex
		c := m.NewCond()
		ready := false
		x.Go("waits", func() {
			m.Lock()
			for !ready {
				c.Wait()
			}
			m.Unlock()
		})
		x.Go("signals", func() {
			m.Lock()
			ready = true
			if right {
				c.Signal()
			}
			m.Unlock()
			if !right {
				c.Signal()
			}
		})
	})
	add("the wrong condition is signalled", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		empty, full := m.NewCond(), m.NewCond()
		items := 0
		x.Go("takes", func() {
			m.Lock()
			for items == 0 {
				full.Wait()
			}
			items--
			empty.Signal()
			m.Unlock()
		})
		x.Go("puts", func() {
			m.Lock()
			items++
			if right {
				full.Signal()
			} else {
				empty.Signal()
			}
			m.Unlock()
		})
	})
	add("an error path unlocks twice", Panic, func(x *X, right bool) {
		var m fair.Mutex
		closed := false
		x.Go("closes", func() {
			m.Lock()
			closed = true
			m.Unlock()
		})
		x.Go("uses", func() {
			m.Lock()
			if closed && !right {
				m.Unlock()
			}
			m.Unlock()
		})
	})
	add("an error path does not unlock", Deadlock, func(x *X, right bool) {
		var m reentrant.Mutex
		closed := false
		x.Go("closes", func() {
			m.Lock()
			closed = true
			m.Unlock()
		})
		for range 2 {
			x.Go("uses", func() {
				m.Lock()
				if closed && !right {
					return
				}
				m.Unlock()
			})
		}
	})
	add("a goroutine unlocks what another holds", Panic, func(x *X, right bool) {
		var m reentrant.Mutex
		x.Go("locks", func() {
			m.Lock()
			m.Unlock()
		})
		x.Go("tries", func() {
			if m.TryLock() || !right {
				m.Unlock()
			}
		})
	})
	add("a failed try goes on", Failure, func(x *X, right bool) {
		var m fair.Mutex
		var inside atomic.Int32
		enter := func() {
			inside.Add(1)
			x.Step()
			x.Check(inside.Load() == 1, "two are inside")
			inside.Add(-1)
		}
		x.Go("locks", func() {
			m.Lock()
			enter()
			m.Unlock()
		})
		x.Go("tries", func() {
			if ok := m.TryLock(); ok || !right {
				enter()
				if ok {
					m.Unlock()
				}
			}
		})
	})
	add("a reader becomes a writer", Panic, func(x *X, right bool) {
		var rw rwlock.RWMutex
		cached := false
		for range 2 {
			x.Go("reads", func() {
				rw.RLock()
				if !cached {
					if right {
						rw.RUnlock()
					}
					rw.Lock()
					cached = true
					rw.Unlock()
					if right {
						return
					}
				}
				rw.RUnlock()
			})
		}
	})
	add("a reader calls what writes", Deadlock, func(x *X, right bool) {
		var rw fair.RWMutex
		misses := 0
		miss := func() {
			rw.Lock()
			misses++
			rw.Unlock()
		}
		x.Go("reads", func() {
			rw.RLock()
			if right {
				rw.RUnlock()
			}
			miss()
			if !right {
				rw.RUnlock()
			}
		})
	})
	add("a reader reads again behind a writer", Deadlock, func(x *X, right bool) {
		var rw fair.RWMutex
		x.Go("reads", func() {
			rw.RLock()
			if !right {
				rw.RLock()
				rw.RUnlock()
			}
			rw.RUnlock()
		})
		x.Go("writes", func() {
			rw.Lock()
			rw.Unlock()
		})
	})
	add("a stamped read is nested in another", Deadlock, func(x *X, right bool) {
		var l rwlock.StampedLock
		x.Go("reads", func() {
			st := l.ReadLock()
			if !right {
				l.UnlockRead(l.ReadLock())
			}
			l.UnlockRead(st)
		})
		x.Go("writes", func() { l.UnlockWrite(l.WriteLock()) })
	})
	add("an optimistic read is not validated", Failure, func(x *X, right bool) {
		var l rwlock.StampedLock
		var a, b cas.Packed
		x.Go("writes", func() {
			st := l.WriteLock()
			a.Store(1, 0)
			b.Store(1, 0)
			l.UnlockWrite(st)
		})
		x.Go("reads", func() {
			st := l.TryOptimisticRead()
			va, _ := a.Load()
			vb, _ := b.Load()
			if right && !l.Validate(st) {
				return
			}
			x.Check(va == vb, "read %d and %d", va, vb)
		})
	})
	add("a write lock is given up before the read", Failure, func(x *X, right bool) {
		var rw rwlock.RWMutex
		value := 0
		for i := range 2 {
			x.Go("writes and reads", func() {
				rw.Lock()
				value = i
				if right {
					rw.Downgrade()
				} else {
					rw.Unlock()
					rw.RLock()
				}
				x.Check(value == i, "%d wrote %d, and reads %d", i, i, value)
				rw.RUnlock()
			})
		}
	})
	add("a conversion that fails is taken for one", Failure, func(x *X, right bool) {
		var l rwlock.StampedLock
		n := 0
		for range 2 {
			x.Go("adds", func() {
				st := l.ReadLock()
				was := n
				if w := l.TryConvertToWriteLock(st); w != 0 {
					n = was + 1
					l.UnlockWrite(w)
					return
				}
				l.UnlockRead(st)
				w := l.WriteLock()
				if right {
					was = n
				}
				n = was + 1
				l.UnlockWrite(w)
			})
		}
		x.Wait()
		x.Check(n == 2, "n is %d", n)
	})
	add("a time limit leaves the first lock held", Failure, func(x *X, right bool) {
		var a, b fair.Mutex
		x.Go("holds", func() {
			b.Lock()
			x.Step()
			b.Unlock()
		})
		x.Go("wants both", func() {
			a.Lock()
			if !b.TryLockFor(time.Second) {
				if right {
					a.Unlock()
				}
				return
			}
			b.Unlock()
			a.Unlock()
		})
		x.Wait()
		x.Check(!a.IsLocked(), "the first lock is held by nobody")
	})
	add("the error of a cancelled lock is ignored", Failure, func(x *X, right bool) {
		var m fair.Mutex
		ctx, cancel := context.WithCancel(x.Context())
		var inside atomic.Int32
		enter := func() {
			inside.Add(1)
			x.Step()
			x.Check(inside.Load() == 1, "two are inside")
			inside.Add(-1)
		}
		x.Go("locks", func() {
			m.Lock()
			enter()
			m.Unlock()
		})
		x.Go("is cancelled", func() {
			if err := m.LockContext(ctx); err != nil {
				if !right {
					enter()
				}
				return
			}
			enter()
			m.Unlock()
		})
		x.Go("cancels", cancel)
	})
	add("a wait that timed out is taken for a signal", Failure, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		ready := false
		x.Go("waits", func() {
			m.Lock()
			defer m.Unlock()
			if !ready {
				signalled := c.WaitUntil(time.Now().Add(time.Second))
				if right && !signalled {
					return
				}
			}
			x.Check(ready, "not ready after the wait")
		})
		x.Go("signals", func() {
			m.Lock()
			ready = true
			c.Signal()
			m.Unlock()
		})
	})
	add("a semaphore signals only when it was empty", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		permits := 0
		for range 2 {
			x.Go("acquires", func() {
				m.Lock()
				for permits == 0 {
					c.Wait()
				}
				permits--
				m.Unlock()
			})
		}
		for range 2 {
			x.Go("releases", func() {
				m.Lock()
				permits++
				if right || permits == 1 {
					c.Signal()
				}
				m.Unlock()
			})
		}
	})
	add("a FIFO mutex parks without looking again", LostWakeup, func(x *X, right bool) {
		// The textbook's FIFOMutex, with a condition of each waiter for its park.
		var guard fair.Mutex
		held := false
		var queue []*condition.Cond
		lock := func() {
			guard.Lock()
			if held {
				c := guard.NewCond()
				queue = append(queue, c)
				if !right { // the mutex is released between the look and the wait
					guard.Unlock()
					guard.Lock()
				}
				c.Wait()
			} else {
				held = true
			}
			guard.Unlock()
		}
		unlock := func() {
			guard.Lock()
			if len(queue) > 0 {
				queue[0].Signal()
				queue = queue[1:]
			} else {
				held = false
			}
			guard.Unlock()
		}
		for range 2 {
			x.Go("enters", func() {
				lock()
				unlock()
			})
		}
	})
	add("the balance is looked at in another hold", Failure, func(x *X, right bool) {
		var m reentrant.Mutex
		balance := 10
		has := func(n int) bool {
			m.Lock()
			defer m.Unlock()
			return balance >= n
		}
		pay := func(n int) {
			m.Lock()
			defer m.Unlock()
			balance -= n
			x.Check(balance >= 0, "the balance is %d", balance)
		}
		for range 2 {
			x.Go("pays", func() {
				if right {
					m.Lock()
					defer m.Unlock()
				}
				if has(10) {
					pay(10)
				}
			})
		}
	})
	add("a value is made twice", Failure, func(x *X, right bool) {
		var rw fair.RWMutex
		made, value := 0, false
		for range 2 {
			x.Go("gets", func() {
				rw.RLock()
				has := value
				rw.RUnlock()
				if has {
					return
				}
				rw.Lock()
				if !right || !value {
					made++
					value = true
				}
				rw.Unlock()
			})
		}
		x.Wait()
		x.Check(made == 1, "made %d times", made)
	})
	add("a free list compares without a stamp", Failure, func(x *X, right bool) {
		// The nodes 1 and 2 are in a list, 1 first. next1 and next2 have the nodes behind them.
		var top, next1, next2 cas.Packed
		top.Store(1, 0)
		next1.Store(2, 0)
		next := func(n uint32) *cas.Packed {
			if n == 1 {
				return &next1
			}
			return &next2
		}
		pop := func() uint32 {
			for {
				n, stamp := top.Load()
				if n == 0 {
					return 0
				}
				behind, _ := next(n).Load()
				to := stamp
				if right {
					to++
				}
				if top.CompareAndSwap(n, behind, stamp, to) {
					return n
				}
			}
		}
		push := func(n uint32) {
			for {
				head, stamp := top.Load()
				next(n).Store(head, 0)
				to := stamp
				if right {
					to++
				}
				if top.CompareAndSwap(head, n, stamp, to) {
					return
				}
			}
		}
		var have, others []uint32
		x.Go("pops", func() { have = append(have, pop()) })
		x.Go("pops twice and pushes", func() {
			a, b := pop(), pop()
			if b != 0 {
				others = append(others, b)
			}
			if a != 0 {
				push(a)
			}
		})
		x.Wait()
		for n := pop(); n != 0; n = pop() {
			have = append(have, n)
		}
		have = slices.DeleteFunc(append(have, others...), func(n uint32) bool { return n == 0 })
		slices.Sort(have)
		x.Check(slices.Equal(have, slices.Compact(slices.Clone(have))), "a node is there twice: %v", have)
	})
	add("a worker is left behind", Leak, func(x *X, right bool) {
		result := make(chan int, map[bool]int{true: 1}[right])
		var m fair.Mutex
		x.Go("works", func() {
			m.Lock()
			m.Unlock()
			select {
			case result <- 1:
			case <-x.Context().Done(): // so that the test itself leaves nothing
			}
		})
		m.Lock()
		gaveUp := true
		m.Unlock()
		if !gaveUp {
			<-result
		}
	})
	add("a barging lock starves a waiter", Starvation, func(x *X, right bool) {
		lock := locks.TryLocker(new(fair.BargingMutex))
		if right {
			lock = new(fair.Mutex)
		}
		loop := func(n int) func() {
			return func() {
				for range n {
					_ = lock.LockContext(x.Context())
					_ = lock.UnlockContext(x.Context())
				}
			}
		}
		x.Go("loops", loop(4))
		x.Go("wants it once", loop(1))
	}, Starve(2))
	add("the last of a barrier forgets to wake", LostWakeup, func(x *X, right bool) {
		var m fair.Mutex
		c := m.NewCond()
		arrived := 0
		for range 3 {
			x.Go("arrives", func() {
				m.Lock()
				arrived++
				if arrived == 3 {
					if right {
						c.Broadcast()
					} else {
						c.Signal()
					}
				}
				for arrived < 3 {
					c.Wait()
				}
				m.Unlock()
			})
		}
	}, Preemptions(1), Schedules(20_000))
	add("a resource takes a stale token", Failure, func(x *X, right bool) {
		l := x.NewLease("order")
		var resource sync.Mutex
		var last uint64
		for range 2 {
			x.Go("writes", func() {
				_ = locks.Do(x.Context(), l, func(ctx context.Context) error {
					h, _ := locks.HoldFrom(ctx)
					x.Step()
					resource.Lock()
					defer resource.Unlock()
					if right && h.Token() < last {
						return nil
					}
					x.Check(h.Token() >= last, "token %d wrote after token %d", h.Token(), last)
					last = h.Token()
					return nil
				})
			})
		}
	})
	add("the loss of a lease is not looked at", Failure, func(x *X, right bool) {
		l := x.NewLease("leader")
		var newest atomic.Uint64
		for range 2 {
			x.Go("leads", func() {
				if l.LockContext(x.Context()) != nil {
					return
				}
				h, err := l.Hold(x.Context())
				x.Check(err == nil, "%v", err)
				newest.Store(max(newest.Load(), h.Token()))
				x.Step()
				if !right || h.Err() == nil {
					x.Check(newest.Load() == h.Token(), "the leader %d acts beside %d", h.Token(), newest.Load())
				}
				_ = l.UnlockContext(x.Context())
			})
		}
	})
	add("a lost lease is released as if it were held", Failure, func(x *X, right bool) {
		l := x.NewLease("job")
		x.Go("works", func() {
			if l.LockContext(x.Context()) != nil {
				return
			}
			err := l.UnlockContext(x.Context())
			if right && errors.Is(err, locks.ErrLost) {
				return // the work is done again
			}
			x.Check(err == nil, "%v", err)
		})
	})
}

// locker is a lock with the plain methods.
type locker interface {
	Lock()
	Unlock()
}

func twoOrders(x *X, right bool, a, b locker) {
	both := func(first, second locker) func() {
		return func() {
			first.Lock()
			second.Lock()
			second.Unlock()
			first.Unlock()
		}
	}
	x.Go("a, b", both(a, b))
	if right {
		x.Go("a, b", both(a, b))
	} else {
		x.Go("b, a", both(b, a))
	}
}

func TestEveryMistakeOfTheCorpusIsFound(t *testing.T) {
	require.GreaterOrEqual(t, len(corpus), 30)
	worst := 0
	for _, p := range corpus {
		t.Run(p.name, func(t *testing.T) {
			r := search(t, configure(p.opts), p.wrong)
			require.NotNil(t, r.finding)
			require.Equal(t, p.kind, r.finding.Kind, "%s", r.report())
			require.LessOrEqual(t, r.schedules, most)
			worst = max(worst, r.schedules)
			t.Logf("%s", r.report())
			want := r.report()
			for range replays {
				again := search(t, configure(append(slices.Clone(p.opts), Replay(r.replay()))), p.wrong)
				require.NoError(t, again.err)
				require.NotNil(t, again.finding)
				if r.strayed {
					require.Equal(t, p.kind, again.finding.Kind)
					continue
				}
				again.schedules = r.schedules
				require.Equal(t, want, again.report())
			}
		})
	}
	t.Logf("%d mistakes, each in at most %d schedules", len(corpus), worst)
}

func TestNoCorrectProgramOfTheCorpusIsReported(t *testing.T) {
	for _, p := range corpus {
		t.Run(p.name, func(t *testing.T) {
			r := search(t, configure(append(slices.Clone(p.opts), atMost(3000))), p.right)
			if r.finding != nil {
				require.Nil(t, r.finding, "%s", r.report())
			}
			t.Log(r.schedules, r.complete)
		})
	}
}

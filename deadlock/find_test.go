package deadlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

func policies(t *testing.T, test func(t *testing.T, p locks.Policy)) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, p) })
		})
	}
}

// cross lets each of ps take its own lock of ls, and then wait for the next party's lock.
func cross(t *testing.T, ps []*party, ls []locks.TryLocker) {
	for i, p := range ps {
		require.NoError(t, p.lock(ls[i]))
	}
	for i, p := range ps {
		require.Empty(t, deadlock.Find())
		require.NoError(t, p.lock(ls[(i+1)%len(ls)]))
		require.False(t, p.back, "waits")
	}
}

func TestTwoGoroutinesWaitingForEachOtherAreFound(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		cross(t, []*party{p, q}, []locks.TryLocker{a, b})

		cycles := deadlock.Find()
		require.Equal(t, [][]locks.Owner{{p.me, q.me}}, parties(cycles))
		c := cycles[0]
		require.Equal(t, q.me, c[0].For)
		require.Equal(t, p.me, c[1].For)
		require.Equal(t, p.in, c[0].Goroutine)
		require.Equal(t, "reentrant.Mutex", c[0].Lock.Type)
		require.Equal(t, fmt.Sprintf("%p", b), fmt.Sprintf("%#x", c[0].Lock.Address))
		require.Equal(t, fmt.Sprintf("%p", a), fmt.Sprintf("%#x", c[1].Lock.Address))
		require.Contains(t, c[0].Stack, "reentrant.(*Mutex).LockContext")
		require.Contains(t, c[0].Stack, "party_test.go")
		require.Empty(t, c[0].Taken)
		text := c.String()
		require.Contains(t, text, "deadlock of 2")
		require.Contains(t, text, fmt.Sprintf("%v waits for reentrant.Mutex(%p), held by %v\n", p.me, b, q.me))
		require.Contains(t, text, fmt.Sprintf("%v waits for reentrant.Mutex(%p), held by %v\n", q.me, a, p.me))
		require.Contains(t, text, "party_test.go")
	})
}

func TestACycleEndsWithOneWait(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		cross(t, []*party{p, q}, []locks.TryLocker{a, b})
		require.Len(t, deadlock.Find(), 1)
		p.cancel()
		synctest.Wait()
		require.ErrorIs(t, p.err, context.Canceled)
		require.Empty(t, deadlock.Find())
		p.unlock(t, a)
		require.True(t, q.back)
		require.NoError(t, q.err)
	})
}

func TestACycleWithoutLimitsIsCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b reentrant.Mutex
		p, q := goroutine(t), goroutine(t)
		p.run(a.Lock)
		q.run(b.Lock)
		p.run(b.Lock)
		q.run(a.Lock)
		cycles := deadlock.Find()
		require.Len(t, cycles, 1)
		require.True(t, cycles[0].Certain())
		require.NotContains(t, cycles[0].String(), "note")

		// Nothing but this can open it.
		require.NoError(t, a.UnlockContext(locks.WithOwner(t.Context(), p.me)))
		synctest.Wait()
		q.run(a.Unlock)
		q.run(b.Unlock)
		p.run(b.Unlock)
		end(p, q)
	})
}

func TestATimeLimitedWaitIsFoundAndNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b reentrant.Mutex
		p, q := goroutine(t), goroutine(t)
		p.run(a.Lock)
		q.run(b.Lock)
		p.run(b.Lock)
		ok := true
		q.run(func() { ok = a.TryLockFor(time.Minute) })
		cycles := deadlock.Find()
		require.Len(t, cycles, 1)
		c := cycles[0]
		require.False(t, c.Certain())
		require.False(t, c[0].Limited)
		require.True(t, c[1].Limited)
		require.Contains(t, c.String(), "a time limit can end this wait")

		time.Sleep(time.Hour)
		synctest.Wait()
		require.False(t, ok)
		require.Empty(t, deadlock.Find())
		q.run(b.Unlock)
		p.run(b.Unlock)
		end(p, q)
	})
}

func TestCycleOfThreeExcludesItsOutsideWaiters(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b, c := reentrant.New(policy), reentrant.New(policy), reentrant.New(policy)
		ps := []*party{goroutine(t), goroutine(t), goroutine(t)}
		bystander := goroutine(t)
		defer end(append(ps, bystander)...)
		cross(t, ps, []locks.TryLocker{a, b, c})
		require.NoError(t, bystander.lock(b))
		require.Equal(t, [][]locks.Owner{{ps[0].me, ps[1].me, ps[2].me}}, parties(deadlock.Find()))
	})
}

func TestTwoCyclesAreFoundApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ps []*party
		for range 2 {
			var a, b reentrant.Mutex
			two := []*party{goroutine(t), goroutine(t)}
			ps = append(ps, two...)
			for i, p := range two {
				require.NoError(t, p.lock([]*reentrant.Mutex{&a, &b}[i]))
			}
			for i, p := range two {
				require.NoError(t, p.lock([]*reentrant.Mutex{&b, &a}[i]))
			}
		}
		defer end(ps...)
		require.ElementsMatch(t, [][]locks.Owner{{ps[0].me, ps[1].me}, {ps[2].me, ps[3].me}}, parties(deadlock.Find()))
	})
}

func TestReentrantHoldsCountUntilTheLast(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		for range 3 {
			require.NoError(t, p.lock(a))
		}
		p.unlock(t, a)
		require.NoError(t, q.lock(b))
		require.NoError(t, q.lock(a))
		require.NoError(t, p.lock(a), "past the waiter, and no cycle of its own")
		require.True(t, p.back)
		require.Empty(t, deadlock.Find())
		require.NoError(t, p.lock(b))
		require.Equal(t, [][]locks.Owner{{p.me, q.me}}, parties(deadlock.Find()))
	})
}

func TestExplicitOwnerIsFoundWithGoroutineAndNote(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		o := locks.NewOwner()
		p, q := newParty(locks.WithOwner(t.Context(), o)), goroutine(t)
		defer end(p, q)
		cross(t, []*party{p, q}, []locks.TryLocker{a, b})
		cycles := deadlock.Find()
		require.Equal(t, [][]locks.Owner{{o, q.me}}, parties(cycles))
		require.Equal(t, p.in, cycles[0][0].Goroutine)
		require.NotEmpty(t, cycles[0][0].Stack)
		require.False(t, cycles[0].Certain())
		require.Contains(t, cycles[0].String(), fmt.Sprintf("%v (in %v) waits", o, p.in))
		require.Contains(t, cycles[0].String(), "another goroutine may act for "+o.String())
		require.Empty(t, deadlock.Orphans(), "an explicit owner never exits")
	})
}

func TestCycleThroughAnExplicitOwnerIsNotCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b reentrant.Mutex
		o := locks.WithOwner(context.Background(), locks.NewOwner())
		p, q := goroutine(t), goroutine(t)
		p.run(func() { require.NoError(t, a.LockContext(o)) })
		q.run(b.Lock)
		p.run(func() { require.NoError(t, b.LockContext(o)) })
		q.run(a.Lock)
		cycles := deadlock.Find()
		require.Len(t, cycles, 1)
		require.False(t, cycles[0].Certain())
		require.NoError(t, a.UnlockContext(o), "this is why")
		synctest.Wait()
		require.True(t, q.back)
		q.run(a.Unlock)
		q.run(b.Unlock)
		p.run(func() { require.NoError(t, b.UnlockContext(o)) })
		end(p, q)
	})
}

func TestACycleThroughReadHoldsIsFound(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := rwlock.New(policy), reentrant.New(policy)
		p, q, other := goroutine(t), goroutine(t), goroutine(t)
		defer end(p, q, other)
		require.NoError(t, other.lock(a.ReadLocker()))
		require.NoError(t, p.lock(a.ReadLocker()))
		require.NoError(t, q.lock(b))
		require.NoError(t, q.lock(a))
		require.Empty(t, deadlock.Find(), "the readers do not wait")
		require.NoError(t, p.lock(b))
		cycles := deadlock.Find()
		require.Equal(t, [][]locks.Owner{{p.me, q.me}}, parties(cycles))
		require.Equal(t, "rwlock.RWMutex", cycles[0][1].Lock.Type)
		require.False(t, cycles[0][1].Behind)
		other.unlock(t, a.ReadLocker())
		require.Len(t, deadlock.Find(), 1)
	})
}

func TestReaderBehindAQueuedWriterWaitsForIt(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := rwlock.New(policy), reentrant.New(policy)
		first, writer, second := goroutine(t), goroutine(t), goroutine(t)
		defer end(first, writer, second)
		require.NoError(t, first.lock(a.ReadLocker()))
		require.NoError(t, writer.lock(a))
		require.NoError(t, second.lock(b))
		require.NoError(t, second.lock(a.ReadLocker()))
		require.False(t, second.back)
		require.Empty(t, deadlock.Find())
		require.NoError(t, first.lock(b))
		cycles := deadlock.Find()
		require.Equal(t, [][]locks.Owner{{first.me, second.me, writer.me}}, parties(cycles))
		c := cycles[0]
		require.Equal(t, []bool{false, true, false}, []bool{c[0].Behind, c[1].Behind, c[2].Behind})
		require.Equal(t, []bool{false, true, false}, []bool{c[0].Shared, c[1].Shared, c[2].Shared})
		require.Contains(t, c.String(), fmt.Sprintf("%v waits to share for rwlock.RWMutex(%#x), behind %v in its queue",
			second.me, c[1].Lock.Address, writer.me))

		writer.cancel()
		synctest.Wait()
		require.Empty(t, deadlock.Find())
		require.True(t, second.back, "the reader joins the first")
		require.NoError(t, second.err)
	})
}

func TestReadersWaitForTheExclusiveHolder(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := rwlock.New(policy), reentrant.New(policy)
		p, q, r := goroutine(t), goroutine(t), goroutine(t)
		defer end(p, q, r)
		require.NoError(t, p.lock(a))
		require.NoError(t, q.lock(b))
		require.NoError(t, r.lock(a))
		require.NoError(t, q.lock(a.ReadLocker()))
		require.NoError(t, p.lock(b))
		require.Equal(t, [][]locks.Owner{{p.me, q.me}}, parties(deadlock.Find()))
	})
}

func TestReaderThatWaitsToWriteIsACycle(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a := newShared(policy == locks.FIFO)
		p := goroutine(t)
		defer end(p)
		require.NoError(t, p.lock(reader{a}))
		require.NoError(t, p.lock(a))
		cycles := deadlock.Find()
		require.Equal(t, [][]locks.Owner{{p.me}}, parties(cycles))
		require.Equal(t, p.me, cycles[0][0].For)
	})
}

func TestConditionWaiterWaitsForNobodyUntilSignalled(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		c := b.NewCond()
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		require.NoError(t, p.lock(a))
		require.NoError(t, p.lock(b))
		p.run(c.Wait)
		require.NoError(t, q.lock(b))
		require.NoError(t, q.lock(a)) // held by p
		require.Empty(t, deadlock.Find())
		q.cancel()
		synctest.Wait()
		q.run(c.Signal)
		require.False(t, p.back)
		require.Empty(t, deadlock.Find(), "q holds b, but runs")
		q.ctx, q.cancel = context.WithCancel(t.Context())
		require.NoError(t, q.lock(a))
		cycles := deadlock.Find()
		require.Equal(t, [][]locks.Owner{{p.me, q.me}}, parties(cycles))
		require.Contains(t, cycles[0][0].Stack, "condition.(*Cond).Wait")

		q.cancel()
		synctest.Wait()
		q.unlock(t, b)
		require.True(t, p.back)
	})
}

func TestAKeyedLockShowsItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := new(keyed.Mutexes[any])
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		cross(t, []*party{p, q}, []locks.TryLocker{set.Of("orders/7"), set.Of(42)})
		c := deadlock.Find()[0]
		require.Equal(t, "keyed.Mutex", c[0].Lock.Type)
		require.Equal(t, 42, c[0].Lock.Key)
		require.Contains(t, c.String(), `waits for keyed.Mutex("orders/7"), held`)
		require.Contains(t, c.String(), "waits for keyed.Mutex(42), held")
	})
}

func TestLocksWithoutOwnersTakeNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b fair.Mutex
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		cross(t, []*party{p, q}, []locks.TryLocker{&a, &b})
		require.Empty(t, deadlock.Find())
		require.Empty(t, deadlock.Orphans())
	})
}

var global1, global2 reentrant.Mutex

func TestLocksInVariablesAndObjectsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type object struct {
			name string
			mu   [3]reentrant.Mutex
		}
		inner := new(object)
		ps := []*party{goroutine(t), goroutine(t), goroutine(t), goroutine(t)}
		cross(t, ps, []locks.TryLocker{&global1, &inner.mu[1], &global2, &inner.mu[2]})
		require.Len(t, deadlock.Find(), 1)
		end(ps...)
		for _, l := range []*reentrant.Mutex{&global1, &global2} { // others want them as they were
			require.NoError(t, l.UnlockContext(locks.WithOwner(t.Context(), l.Owner())))
		}
		require.Empty(t, inner.name)
	})
}

func TestALockOfAnExitedOwnerIsOrphan(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		deadlock.Record(true)
		defer deadlock.Record(false)
		m := reentrant.New(policy)
		p, q, owner := goroutine(t), goroutine(t), goroutine(t)
		defer end(p, q)
		require.NoError(t, owner.lock(m))
		require.NoError(t, p.lock(m))
		require.NoError(t, q.lock(m))
		require.Empty(t, deadlock.Orphans(), "its owner lives")
		end(owner)
		synctest.Wait()
		orphans := deadlock.Orphans()
		require.Len(t, orphans, 1)
		o := orphans[0]
		require.Equal(t, owner.me, o.Owner)
		require.Len(t, o.Waits, 2)
		require.Equal(t, p.me, o.Waits[0].Party)
		require.Equal(t, q.me, o.Waits[1].Party)
		require.Equal(t, o.Owner, o.Waits[0].For)
		require.Contains(t, o.Taken, "party_test.go")
		require.Contains(t, o.String(), fmt.Sprintf("reentrant.Mutex(%p) is held by %v, which has exited", m, owner.me))
		require.Contains(t, o.String(), p.in.String()+" waits for it at\n")
		require.Empty(t, deadlock.Find(), "an orphan is no cycle")
	})
}

func TestAnOrphanedReadHoldIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rwlock.New(locks.FIFO)
		p, owner := goroutine(t), goroutine(t)
		defer end(p)
		require.NoError(t, owner.lock(m.ReadLocker()))
		require.NoError(t, p.lock(m))
		end(owner)
		synctest.Wait()
		require.Len(t, deadlock.Orphans(), 1)
		require.Equal(t, owner.me, deadlock.Orphans()[0].Owner)
	})
}

func TestRecordedLocksShowWhereTheyWereAcquired(t *testing.T) {
	for name, take := range map[string]func(p *party, m *reentrant.Mutex){
		"Lock":           func(p *party, m *reentrant.Mutex) { m.Lock() },
		"TryLock":        func(p *party, m *reentrant.Mutex) { m.TryLock() },
		"TryLockFor":     func(p *party, m *reentrant.Mutex) { m.TryLockFor(time.Second) },
		"LockContext":    func(p *party, m *reentrant.Mutex) { _ = m.LockContext(p.ctx) },
		"TryLockContext": func(p *party, m *reentrant.Mutex) { _, _ = m.TryLockContext(p.ctx) },
		"several wrappers": func(p *party, m *reentrant.Mutex) {
			r, l := record.New(record.Options{}), locks.TryLocker(m)
			for range 8 {
				l = r.Wrap("it", l)
			}
			_ = locks.Multi(l).LockContext(p.ctx)
		},
		"Wait": func(p *party, m *reentrant.Mutex) {
			m.Lock()
			m.NewCond().WaitFor(0)
		},
		"Wait while others have it": func(p *party, m *reentrant.Mutex) {
			m.Lock()
			go func() {
				m.Lock()
				m.Unlock() //nolint:staticcheck // empty on purpose
			}()
			m.NewCond().WaitFor(time.Second)
		},
		"re-entry": func(p *party, m *reentrant.Mutex) { m.Lock(); m.Lock(); m.Unlock() },
		"again":    func(p *party, m *reentrant.Mutex) { m.Lock(); m.Unlock(); m.Lock() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.False(t, deadlock.Record(true))
				require.True(t, deadlock.Record(true))
				defer deadlock.Record(false)
				var a, b reentrant.Mutex
				p, q := goroutine(t), goroutine(t)
				defer end(p, q)
				p.run(func() { take(p, &a) })
				q.run(func() { take(q, &b) })
				time.Sleep(time.Minute) // until the waiters have waited
				synctest.Wait()
				_ = p.lock(&b)
				_ = q.lock(&a)
				c := deadlock.Find()[0]
				for _, w := range c {
					require.Regexp(t, `\Agithub.com/jucgo/locks/deadlock_test\.`, w.Taken)
					require.Contains(t, w.Taken, "find_test.go")
				}
				require.Contains(t, c.String(), fmt.Sprintf("%v took it at\n    github.com", q.me))
				require.True(t, deadlock.Record(false))
				require.Empty(t, deadlock.Find()[0][0].Taken, "forgotten")
			})
		})
	}
}

func TestReportShowsWhereAnExplicitOwnerWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b reentrant.Mutex
		p, q := newParty(locks.WithOwner(t.Context(), locks.NewOwner())), goroutine(t)
		defer end(p, q)
		require.NoError(t, p.lock(&a)) // without a record
		c := a.NewCond()
		p.run(func() { p.err = c.WaitContext(p.ctx) })
		deadlock.Record(true)
		defer deadlock.Record(false)
		require.NoError(t, q.lock(&a))
		q.run(c.Signal)
		q.unlock(t, &a)
		require.True(t, p.back)
		require.NoError(t, p.err)
		require.NoError(t, q.lock(&b))
		_ = p.lock(&b)
		_ = q.lock(&a)
		for _, w := range deadlock.Find()[0] {
			require.Contains(t, w.Taken, "_test.go", "by %v", w.For)
		}
	})
}

func TestReportShowsWhereAllReadersTookTheLock(t *testing.T) {
	for name, read := range map[string]func(p *party, rw *rwlock.RWMutex){
		"RLock":           func(_ *party, rw *rwlock.RWMutex) { rw.RLock() },
		"TryRLock":        func(_ *party, rw *rwlock.RWMutex) { rw.TryRLock() },
		"TryRLockContext": func(p *party, rw *rwlock.RWMutex) { _, _ = rw.TryRLockContext(p.ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deadlock.Record(true)
				defer deadlock.Record(false)
				a, b := rwlock.New(locks.FIFO), rwlock.New(locks.FIFO)
				writer := goroutine(t)
				defer end(writer)
				writer.run(b.Lock)
				for range 6 {
					p := goroutine(t)
					defer end(p)
					p.run(func() { read(p, a) })
					require.NoError(t, p.lock(b.ReadLocker()))
				}
				require.NoError(t, writer.lock(a))
				cycles := deadlock.Find()
				require.Len(t, cycles, 6)
				for _, c := range cycles {
					for _, w := range c {
						require.NotEmpty(t, w.Taken)
					}
				}
			})
		})
	}
}

// secret is a key whose methods and fields no report may touch.
type secret struct{ password string }

func (s *secret) String() string { panic(s.password) }

func TestAPointerKeyIsShownByTypeAndAddress(t *testing.T) {
	l := deadlock.Lock{Type: "keyed.Mutex", Key: &secret{"hunter2"}}
	require.Regexp(t, `^keyed\.Mutex\(\*deadlock_test\.secret\(0x[0-9a-f]+\)\)$`, l.String())
}

func TestAReportsStacksBeginAtTheProgramsCall(t *testing.T) {
	c := deadlock.Cycle{{Party: 1, Goroutine: 1, For: 1, Stack: "github.com/jucgo/locks/internal/park.(*Place).Park(...)\n" +
		"\t/src/park.go:1\ngithub.com/jucgo/locks/fair.(*Mutex).Lock(...)\n\t/src/fair.go:2\nmain.main()\n\t/src/main.go:3\n"}}
	require.NotContains(t, c.String(), "internal/park")
	require.Contains(t, c.String(), "fair.(*Mutex).Lock")
	require.Contains(t, c.String(), "main.main()")
}

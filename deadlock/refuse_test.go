package deadlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

func refusing(t *testing.T, test func(t *testing.T, p locks.Policy)) {
	policies(t, func(t *testing.T, p locks.Policy) {
		require.False(t, deadlock.Refuse(true))
		defer func() { require.True(t, deadlock.Refuse(false)) }()
		test(t, p)
	})
}

func TestAnAcquisitionThatClosesACycleIsRefused(t *testing.T) {
	for name, try := range map[string]func(t *testing.T, ctx context.Context, m *reentrant.Mutex){
		"LockContext": func(t *testing.T, ctx context.Context, m *reentrant.Mutex) {
			err := m.LockContext(ctx)
			assert.ErrorIs(t, err, locks.ErrDeadlock)
			assert.ErrorContains(t, err, "reentrant: LockContext")
		},
		"LockContext with a context that never ends": func(t *testing.T, _ context.Context, m *reentrant.Mutex) {
			assert.ErrorIs(t, m.LockContext(context.Background()), locks.ErrDeadlock)
		},
		"Lock": func(t *testing.T, _ context.Context, m *reentrant.Mutex) {
			locktest.PanicsWith(t, locks.ErrDeadlock, m.Lock)
		},
		"TryLockFor": func(t *testing.T, _ context.Context, m *reentrant.Mutex) {
			began := time.Now()
			assert.False(t, m.TryLockFor(time.Hour))
			assert.Zero(t, time.Since(began), "at once")
		},
		"TryLockContext": func(t *testing.T, ctx context.Context, m *reentrant.Mutex) {
			ok, err := m.TryLockContext(ctx)
			assert.False(t, ok)
			assert.NoError(t, err, "does not wait, and so is not refused")
			assert.False(t, m.TryLock())
		},
	} {
		t.Run(name, func(t *testing.T) {
			refusing(t, func(t *testing.T, policy locks.Policy) {
				a, b, c := reentrant.New(policy), reentrant.New(policy), reentrant.New(policy)
				p, q, r, behind := goroutine(t), goroutine(t), goroutine(t), goroutine(t)
				defer end(p, q, r, behind)
				require.NoError(t, p.lock(a))
				require.NoError(t, q.lock(b))
				require.NoError(t, r.lock(c))
				require.NoError(t, r.lock(c))
				require.NoError(t, p.lock(b))
				require.NoError(t, q.lock(c))
				require.NoError(t, behind.lock(a))
				holds := 0
				r.run(func() {
					try(t, r.ctx, a)
					holds = c.HoldCount()
				})
				require.True(t, r.back)
				require.Equal(t, 2, holds, "its holds are as before")
				require.Equal(t, []locks.Owner{behind.me}, a.Queued(), "and it is in no queue")
				require.Empty(t, deadlock.Find())

				// All others come through as if it had never asked.
				r.unlock(t, c)
				r.unlock(t, c)
				require.True(t, q.back)
				q.unlock(t, c)
				q.unlock(t, b)
				require.True(t, p.back)
				p.unlock(t, b)
				p.unlock(t, a)
				require.True(t, behind.back)
				behind.unlock(t, a)
				require.False(t, a.IsLocked())
				require.NoError(t, r.lock(a), "it may try again")
			})
		})
	}
}

func TestWaiterOutsideTheCycleIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b reentrant.Mutex
		p, q, r := goroutine(t), goroutine(t), goroutine(t)
		defer end(p, q, r)
		cross(t, []*party{p, q}, []locks.TryLocker{&a, &b})
		deadlock.Refuse(true)
		defer deadlock.Refuse(false)
		require.NoError(t, r.lock(&a))
		require.False(t, r.back)
	})
}

func TestWaitsOlderThanTheSwitchAreSeen(t *testing.T) {
	policies(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		require.NoError(t, p.lock(a))
		require.NoError(t, q.lock(b))
		require.NoError(t, p.lock(b))
		deadlock.Refuse(true)
		defer deadlock.Refuse(false)
		require.ErrorIs(t, q.lock(a), locks.ErrDeadlock)
		q.unlock(t, b)
		require.True(t, p.back)
	})
}

func TestCycleThatItsHolderLeftIsNotRefused(t *testing.T) {
	refusing(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		require.NoError(t, p.lock(a))
		require.NoError(t, q.lock(b))
		require.NoError(t, p.lock(b))
		p.cancel()
		synctest.Wait()
		require.NoError(t, q.lock(a))
		require.False(t, q.back)
		p.run(a.Unlock)
		require.True(t, q.back)
	})
}

func TestARefusedCycleCrossesReadHoldsAndQueue(t *testing.T) {
	refusing(t, func(t *testing.T, policy locks.Policy) {
		a, b := rwlock.New(policy), reentrant.New(policy)
		first, writer, second := goroutine(t), goroutine(t), goroutine(t)
		defer end(first, writer, second)
		require.NoError(t, first.lock(a.ReadLocker()))
		require.NoError(t, writer.lock(a))
		require.NoError(t, second.lock(b))
		require.NoError(t, second.lock(a.ReadLocker()))
		require.False(t, second.back)
		require.ErrorIs(t, first.lock(b), locks.ErrDeadlock)
		first.unlock(t, a.ReadLocker())
		require.True(t, writer.back)
		writer.unlock(t, a)
		require.True(t, second.back)
	})
}

func TestAReaderIsRefusedToo(t *testing.T) {
	refusing(t, func(t *testing.T, policy locks.Policy) {
		a, b := rwlock.New(policy), reentrant.New(policy)
		first, writer, second := goroutine(t), goroutine(t), goroutine(t)
		defer end(first, writer, second)
		require.NoError(t, first.lock(a.ReadLocker()))
		require.NoError(t, second.lock(b))
		require.NoError(t, first.lock(b))
		require.NoError(t, writer.lock(a))
		require.ErrorIs(t, second.lock(a.ReadLocker()), locks.ErrDeadlock, "behind the writer, which waits for first")
		second.unlock(t, b)
		require.True(t, first.back)
	})
}

func TestACycleOfAnExplicitOwnerIsAllowed(t *testing.T) {
	refusing(t, func(t *testing.T, policy locks.Policy) {
		for _, last := range []int{0, 1} {
			a, b := reentrant.New(policy), reentrant.New(policy)
			ctx := locks.WithOwner(t.Context(), locks.NewOwner())
			ps := []*party{newParty(ctx), goroutine(t)}
			ls := []*reentrant.Mutex{a, b}
			require.NoError(t, ps[0].lock(a))
			require.NoError(t, ps[1].lock(b))
			require.NoError(t, ps[1-last].lock(ls[last]))
			require.NoError(t, ps[last].lock(ls[1-last]))
			require.False(t, ps[last].back)
			require.Len(t, deadlock.Find(), 1, "but it is found")
			require.NoError(t, a.UnlockContext(ctx), "another goroutine of the owner opens it")
			synctest.Wait()
			require.True(t, ps[1].back)
			require.NoError(t, ps[1].err)
			end(ps...)
		}
	})
}

func TestAConditionsWaiterIsNotRefusedButSeen(t *testing.T) {
	refusing(t, func(t *testing.T, policy locks.Policy) {
		a, b := reentrant.New(policy), reentrant.New(policy)
		c := b.NewCond()
		p, q, r := goroutine(t), goroutine(t), goroutine(t)
		defer end(p, q, r)
		require.NoError(t, p.lock(a))
		require.NoError(t, p.lock(b))
		p.run(c.Wait)
		require.NoError(t, q.lock(b))
		q.run(c.Signal)
		require.ErrorIs(t, q.lock(a), locks.ErrDeadlock, "p holds a and waits for b")
		q.unlock(t, b)
		require.True(t, p.back)
		p.run(func() { c.WaitUntil(time.Now().Add(time.Second)) })
		require.NoError(t, r.lock(b))
		require.NoError(t, r.lock(a))
		require.False(t, r.back)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, p.back, "it must have b to return")
		require.Len(t, deadlock.Find(), 1)
		r.cancel()
		synctest.Wait()
		r.run(b.Unlock)
		require.True(t, p.back)
	})
}

func TestARefusedKeyedLockSaysWhich(t *testing.T) {
	refusing(t, func(t *testing.T, policy locks.Policy) {
		set := keyed.New[string](policy)
		a, b := set.Of("a"), set.Of("b")
		p, q := goroutine(t), goroutine(t)
		defer end(p, q)
		require.NoError(t, p.lock(a))
		require.NoError(t, q.lock(b))
		require.NoError(t, p.lock(b))
		err := q.lock(a)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		require.ErrorContains(t, err, `keyed: LockContext of "a": `)
		q.run(func() { locktest.PanicsWith(t, locks.ErrDeadlock, a.Lock) })
		require.Equal(t, 2, set.Len())
		q.unlock(t, b)
		p.unlock(t, b)
		p.unlock(t, a)
		require.Zero(t, set.Len())
	})
}

func TestOnePartyOfEachCycleIsRefused(t *testing.T) {
	for _, policy := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(policy.String(), func(t *testing.T) {
			deadlock.Refuse(true)
			defer deadlock.Refuse(false)
			for round := range 300 {
				n := 2 + round%3
				ls := make([]*reentrant.Mutex, n)
				for i := range ls {
					ls[i] = reentrant.New(policy)
				}
				var refused atomic.Int32
				var ready, wg sync.WaitGroup
				ready.Add(n)
				for i := range n {
					wg.Go(func() {
						own, next := ls[i], ls[(i+1)%n]
						own.Lock()
						defer own.Unlock()
						ready.Done()
						ready.Wait()
						if err := next.LockContext(context.Background()); err != nil {
							assert.ErrorIs(t, err, locks.ErrDeadlock)
							refused.Add(1)
							return
						}
						next.Unlock()
					})
				}
				wg.Wait()
				require.EqualValues(t, 1, refused.Load())
				for _, l := range ls {
					require.False(t, l.IsLocked() || l.HasQueued())
				}
			}
		})
	}
}

func TestPhilosophersThatStartAgainWhenRefusedAllEat(t *testing.T) {
	deadlock.Refuse(true)
	defer deadlock.Refuse(false)
	var forks [5]reentrant.Mutex
	var refused atomic.Int32
	var wg sync.WaitGroup
	for i := range forks {
		left, right := &forks[i], &forks[(i+1)%len(forks)]
		wg.Go(func() {
			for eaten := 0; eaten < 300; {
				left.Lock()
				err := right.LockContext(context.Background())
				if err == nil {
					eaten++
					right.Unlock()
				} else if errors.Is(err, locks.ErrDeadlock) {
					refused.Add(1)
				}
				left.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d refused", refused.Load())
	for i := range forks {
		require.False(t, forks[i].IsLocked() || forks[i].HasQueued())
	}
}

// Each party asks for all locks in any order, and starts again when refused. A missed cycle makes
// the test hang. Writers that give up stand between a reader and the writer that it waits for: a
// wait that a search has seen is gone a moment later.
func TestCancelledWaitsInBetweenHideNoCycle(t *testing.T) {
	for _, policy := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(policy.String(), func(t *testing.T) {
			deadlock.Refuse(true)
			defer deadlock.Refuse(false)
			rw := []*rwlock.RWMutex{rwlock.New(policy), rwlock.New(policy)}
			all := []locks.Locker{rw[0], rw[1], rw[0].ReadLocker(), rw[1].ReadLocker(), reentrant.New(policy)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var refused atomic.Int32
			var wg, others sync.WaitGroup
			for g := range 6 {
				r := rand.New(rand.NewPCG(uint64(g), 1))
				wg.Go(func() {
					for range 1500 {
						var held []locks.Locker
						for range 3 {
							l := all[r.IntN(len(all))]
							err := l.LockContext(ctx)
							if err == nil {
								held = append(held, l)
							} else if errors.Is(err, locks.ErrDeadlock) {
								refused.Add(1)
								break
							}
						}
						for len(held) > 0 {
							i := r.IntN(len(held))
							assert.NoError(t, held[i].UnlockContext(ctx))
							held = append(held[:i], held[i+1:]...)
						}
					}
				})
			}
			stop := make(chan struct{})
			for g := range 4 {
				r := rand.New(rand.NewPCG(uint64(g), 2))
				impatient := ctx
				if g == 0 {
					impatient = locks.WithOwner(ctx, locks.NewOwner())
				}
				others.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						wait, end := context.WithTimeout(impatient, time.Duration(r.IntN(100))*time.Microsecond)
						if l := rw[r.IntN(2)]; l.LockContext(wait) == nil {
							assert.NoError(t, l.UnlockContext(impatient))
						}
						end()
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(5 * time.Minute):
				t.Errorf("not refused: %v", deadlock.Find())
				cancel() // all are let go
				<-done
			}
			close(stop)
			others.Wait()
			t.Logf("%d refused", refused.Load())
			for _, l := range rw {
				require.False(t, l.IsWriteLocked() || l.ReadLockCount() > 0 || l.HasQueued())
			}
		})
	}
}

func TestTheSwitchesMayBeThrownAtAnyTime(t *testing.T) {
	defer deadlock.Refuse(false)
	defer deadlock.Record(false)
	var ls [4]reentrant.Mutex
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var throwing sync.WaitGroup
	throwing.Go(func() {
		for on := true; ; on = !on {
			select {
			case <-stop:
				return
			default:
			}
			deadlock.Refuse(on)
			deadlock.Find()
			deadlock.Record(!on)
			time.Sleep(50 * time.Microsecond)
		}
	})
	for i := range 8 {
		wg.Go(func() {
			for k := range 300 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+k%3)*time.Millisecond)
				a, b := &ls[(i+k)%4], &ls[(i*k)%4]
				if a.LockContext(ctx) == nil {
					if b.LockContext(ctx) == nil {
						time.Sleep(time.Duration(k%7) * time.Microsecond)
						b.Unlock()
					}
					a.Unlock()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	close(stop)
	throwing.Wait()
	for i := range ls {
		require.False(t, ls[i].IsLocked() || ls[i].HasQueued())
	}
}

func TestLockingInOrderMeetsNoFalseAlarm(t *testing.T) {
	for _, policy := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(policy.String(), func(t *testing.T) {
			deadlock.Refuse(true)
			defer deadlock.Refuse(false)
			const parties, rounds = 12, 400
			var order [5]locks.Locker // readers and writers of two locks, and three others
			rw := []*rwlock.RWMutex{rwlock.New(policy), rwlock.New(policy)}
			for i := range order {
				order[i] = reentrant.New(policy)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var wg, looking sync.WaitGroup
			stop := make(chan struct{})
			looking.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					for _, c := range deadlock.Find() {
						t.Errorf("a false alarm: %v", c)
					}
				}
			})
			for g := range parties {
				wg.Go(func() {
					own := ctx
					if g%4 == 0 {
						own = locks.WithOwner(ctx, locks.NewOwner())
					}
					for k := range rounds {
						var held []locks.Locker
						for i, l := range order {
							if (k*7+g*3+i*5)%4 == 0 {
								continue
							}
							if i%2 == 1 {
								if (k+g+i)%3 == 0 {
									l = rw[i/2]
								} else {
									l = rw[i/2].ReadLocker()
								}
							}
							wait, end := own, context.CancelFunc(func() {})
							if (k+g)%5 == 0 {
								wait, end = context.WithTimeout(own, 20*time.Microsecond)
							}
							err := l.LockContext(wait)
							end()
							if err == nil {
								held = append(held, l)
							} else if !errors.Is(err, context.DeadlineExceeded) {
								t.Errorf("a false alarm: %v", err)
							}
						}
						for len(held) > 0 { // in another order
							i := (k + g) % len(held)
							assert.NoError(t, held[i].UnlockContext(own))
							held = append(held[:i], held[i+1:]...)
						}
					}
				})
			}
			wg.Wait()
			close(stop)
			looking.Wait()
		})
	}
}

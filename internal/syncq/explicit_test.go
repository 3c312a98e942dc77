package syncq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/goid"
)

// played is a wait of an explicit owner that the test plays itself, step by step. Between its
// first step and its last one the other goroutines of the owner may do anything.
type played struct {
	x *Shares
	a *attempt
}

// plays begins a wait for x, which the owner may not enter now.
func plays(t *testing.T, x *Shares, owner int64, isShared bool, policy Policy) played {
	t.Helper()
	p := played{x: x}
	x.with(owner, func(sh *share) Outcome {
		p.a = sh.begin(Owned(owner), isShared, 1, policy)
		return Acquired
	})
	return p
}

// queue puts the waiter in the queue.
func (p played) queue(t *testing.T) played {
	t.Helper()
	require.True(t, p.x.s.enqueue(p.a.node, p.a.policy))
	return p
}

// returns waits until the waiter has the lock or is dismissed, and ends its wait.
func (p played) returns(t *testing.T) {
	t.Helper()
	require.True(t, run(func() bool { return p.x.s.await(p.a.node, p.a.policy, nil) }).result(t))
	require.Equal(t, Acquired, p.x.end(p.a, Acquired))
}

// shares runs f with a lock of each policy.
func shares(t *testing.T, f func(t *testing.T, x *Shares, policy Policy)) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		f(t, s.Shares(), policy)
		require.Empty(t, s.Shares().of)
	})
}

// locks has a goroutine wait for x, and returns when it is in the queue.
func locks(t *testing.T, x *Shares, owner int64, isShared bool, policy Policy, at int) call {
	t.Helper()
	c := run(func() bool { return x.Lock(context.Background(), Owned(owner), isShared, policy) == Acquired })
	eventually(t, func() bool { return x.s.Len() == at })
	return c
}

// condWait has a goroutine of owner acquire n holds of x, and wait for c. The result is whether
// it was signalled.
func condWait(t *testing.T, x *Shares, ctx context.Context, c *Cond, owner int64, n, at int) call {
	t.Helper()
	w := run(func() bool {
		for range n {
			if x.Lock(context.Background(), Owned(owner), false, c.policy) != Acquired {
				t.Error("no hold")
			}
		}
		signalled, out := x.Wait(ctx, c, Owned(owner))
		if out != Acquired {
			t.Error("the wait was refused:", out)
		}
		return signalled
	})
	eventually(t, func() bool { return c.Len() == at })
	return w
}

// unlocks gives back n exclusive holds, which are all of them.
func unlocks(t *testing.T, x *Shares, owner int64, n int, policy Policy) {
	t.Helper()
	for k := range n {
		require.Equal(t, n-k, x.s.holdsOf(owner, false))
		require.Equal(t, Acquired, x.Unlock(owner, policy))
	}
	require.Zero(t, x.s.holdsOf(owner, false))
}

func TestWaitersOfOneExplicitOwnerGetTheLockTogether(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		require.True(t, x.s.TryLock(Owned(1)))
		var waiters []call
		for i, o := range []int64{-5, -2, -5, -3, -5} {
			waiters = append(waiters, locks(t, x, o, false, policy, i+1))
		}
		require.True(t, x.s.Leave(1, policy))
		for _, i := range []int{0, 2, 4} {
			require.True(t, waiters[i].result(t))
		}
		require.EqualValues(t, -5, x.s.Owner())
		require.Equal(t, []int64{-2, -3}, x.s.Waiters())
		require.NoError(t, x.s.Verify())
		unlocks(t, x, -5, 3, policy)
		require.Equal(t, NotHeld, x.Unlock(-5, policy))
		require.True(t, waiters[1].result(t))
		unlocks(t, x, -2, 1, policy)
		require.True(t, waiters[3].result(t))
		unlocks(t, x, -3, 1, policy)
	})
}

func TestASignalledWaiterAndItsOwnersOthersComeInTogether(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		c := NewCond(x.s, policy)
		back := condWait(t, x, context.Background(), c, -5, 2, 1)
		require.True(t, x.s.TryLock(Owned(1)))
		require.True(t, c.Signal())
		var waiters []call
		for i, o := range []int64{-2, -5, -5} {
			waiters = append(waiters, locks(t, x, o, false, policy, i+2))
		}
		require.True(t, x.s.Leave(1, policy))
		require.True(t, back.result(t))
		require.True(t, waiters[1].result(t))
		require.True(t, waiters[2].result(t))
		require.Equal(t, []int64{-2}, x.s.Waiters())
		unlocks(t, x, -5, 4, policy)
		require.True(t, waiters[0].result(t))
		unlocks(t, x, -2, 1, policy)
	})
}

// Two waiters of an owner wait for a signal, one after the other, while a third goroutine of it
// holds the lock whenever it signals. A partial release lets nobody in: the waiter has to come
// back with the signal.
func TestASignalledWaiterOfAHolderComesBackAtOnce(t *testing.T) {
	for _, all := range []bool{false, true} {
		shares(t, func(t *testing.T, x *Shares, policy Policy) {
			const o = -5
			c := NewCond(x.s, policy)
			waiters := []call{
				condWait(t, x, context.Background(), c, o, 1, 1),
				condWait(t, x, context.Background(), c, o, 1, 2),
			}
			require.Equal(t, Acquired, x.Lock(t.Context(), Owned(o), false, policy))
			for i, w := range waiters {
				if !all || i == 0 {
					x.Signal(c, o, all)
				}
				require.True(t, w.result(t), "without an unlock of the signalling goroutine")
				require.NoError(t, x.s.Verify())
			}
			require.Zero(t, x.s.Len())
			unlocks(t, x, o, 3, policy)
		})
	}
}

func TestACanceledWaiterOfAHolderComesBackAtOnce(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		c := NewCond(x.s, policy)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := condWait(t, x, ctx, c, o, 2, 1)
		require.Equal(t, Acquired, x.Lock(t.Context(), Owned(o), false, policy))
		other := locks(t, x, -2, false, policy, 1)
		cancel()
		require.False(t, w.result(t), "past the waiters")
		require.Equal(t, []int64{-2}, x.s.Waiters())
		require.NoError(t, x.s.Verify())
		unlocks(t, x, o, 3, policy)
		require.True(t, other.result(t))
		unlocks(t, x, -2, 1, policy)
	})
}

// Between the end of its limit and its look at the owner's holds, the waiter is in the lock's
// queue.
func TestAWaiterIsLetInWithItsOwnersNextHold(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		require.True(t, x.s.TryLock(Owned(1)))
		w := plays(t, x, o, false, policy).queue(t)
		reader := plays(t, x, o, true, policy).queue(t)
		late := plays(t, x, o, false, policy) // has not come to the queue yet
		stranger := locks(t, x, -2, false, policy, 3)
		require.True(t, x.s.Word.CompareAndSwap(x.s.Word.Load(), Value(o)|x.s.Word.Load()&about)) // 1 hands over
		x.with(o, func(sh *share) Outcome {
			sh.count(false, 1, 1)
			x.admit(sh)
			return Acquired
		})
		require.Equal(t, []int64{-2}, x.s.Waiters())
		require.Equal(t, 3, x.s.holdsOf(o, false))
		require.Equal(t, 1, x.s.holdsOf(o, true))
		require.False(t, x.s.enqueue(late.a.node, policy), "it does not join the queue any more")
		require.Equal(t, Acquired, x.end(late.a, Acquired))
		w.returns(t)
		reader.returns(t)
		require.NoError(t, x.s.Verify())
		unlocks(t, x, o, 3, policy)
		require.Equal(t, Acquired, x.UnlockShared(o, policy))
		require.True(t, stranger.result(t))
		unlocks(t, x, -2, 1, policy)
	})
}

func TestAWaitThatWouldGiveUpOthersHoldsIsRefused(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		c := NewCond(x.s, policy)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		refused := func(want Outcome) {
			t.Helper()
			signalled, out := x.Wait(ended, c, Owned(o))
			require.False(t, signalled)
			require.Equal(t, want, out)
			require.Zero(t, c.Len())
			require.NoError(t, x.s.Verify())
		}
		refused(NotHeld)
		calls, outs := make(chan func() Outcome), make(chan Outcome)
		defer close(calls)
		go func() { // one other goroutine of the owner
			for f := range calls {
				outs <- f()
			}
		}()
		other := func(f func() Outcome) {
			t.Helper()
			calls <- f
			require.Equal(t, Acquired, <-outs)
		}
		take := func() Outcome { return x.Lock(context.Background(), Owned(o), false, policy) }

		require.Equal(t, Acquired, take())
		other(take)
		refused(OthersHold)
		require.Equal(t, 2, x.s.holdsOf(o, false))
		other(func() Outcome { return x.Unlock(o, policy) })
		require.Equal(t, Acquired, take())
		refused(Acquired) // both holds are its own
		require.Equal(t, 2, x.s.holdsOf(o, false))
		unlocks(t, x, o, 2, policy)

		other(take) // the other goroutine's
		refused(Acquired)
		require.Equal(t, 1, x.s.holdsOf(o, false), "a single hold may be anybody's")
		other(take)
		refused(OthersHold)
		unlocks(t, x, o, 2, policy)

		require.Equal(t, Acquired, take())
		require.Equal(t, Acquired, x.Lock(t.Context(), Owned(o), true, policy))
		refused(Upgrade)
		require.Equal(t, Acquired, x.UnlockShared(o, policy))
		unlocks(t, x, o, 1, policy)
	})
}

// While the winner is on its way, the word names the owner, and no hold is counted.
func TestATryNeverFailsWhileItsOwnerComesIn(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		shares(t, func(t *testing.T, x *Shares, policy Policy) {
			const o = -5
			require.True(t, x.s.TryLock(Owned(1)))
			w := plays(t, x, o, false, policy).queue(t)
			w.a.owed = policy == NonFair
			require.True(t, x.s.guarded(policy, drop))
			require.EqualValues(t, o, x.s.Owner(), "though its wait is not over")
			if isShared {
				require.Equal(t, Acquired, x.TryLock(o, true, policy))
			} else {
				require.Equal(t, Acquired, x.TryLock(o, false, policy))
			}
			require.Equal(t, Busy, x.TryLock(-2, false, policy))
			w.returns(t)
			require.NoError(t, x.s.Verify())
			if isShared {
				require.Equal(t, Acquired, x.UnlockShared(o, policy))
				unlocks(t, x, o, 1, policy)
			} else {
				unlocks(t, x, o, 2, policy)
			}
		})
	}
}

// The waiter has been woken, but not run; or it has been woken, and a goroutine of its owner
// has barged in.
func TestATryBargesPastItsOwnersAwakeWaiter(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		t.Run(fmt.Sprint(isShared), func(t *testing.T) {
			const o = -5
			var s Sync
			x := s.Shares()
			require.True(t, s.TryLock(Owned(1)))
			w := plays(t, x, o, false, NonFair)
			permit := w.a.place.Open()
			w.queue(t)
			s.guard.Lock()
			patient(&s)
			s.guard.Unlock()
			require.True(t, s.Unlock(NonFair))
			require.Equal(t, queued|woken, s.Word.Load())
			<-permit // the waiter runs, and is about to race
			if isShared {
				require.Equal(t, Acquired, x.TryLock(o, true, NonFair))
				require.Equal(t, 1, s.Len(), "it waits to write, and its owner reads")
				require.Equal(t, Acquired, x.UnlockShared(o, NonFair))
			} else {
				require.Equal(t, Acquired, x.TryLock(o, false, NonFair))
				require.Zero(t, s.Len())
				require.Equal(t, 2, x.s.holdsOf(o, false))
			}
			require.True(t, s.compete(w.a.node))
			require.Empty(t, permit, "a second permit would be left for the next one that uses the node")
			require.Equal(t, Acquired, x.end(w.a, Acquired))
			unlocks(t, x, o, map[bool]int{false: 2, true: 1}[isShared], NonFair)
			idle(t, &s)
			require.Empty(t, x.of)
		})
	}
}

// The other goroutine ends one of the holds that the waiter has just got back, before the
// waiter runs.
func TestAHoldThatEndsBeforeItsWaiterArrivesIsGone(t *testing.T) {
	for holds := 1; holds <= 3; holds++ {
		t.Run(fmt.Sprint(holds), func(t *testing.T) {
			shares(t, func(t *testing.T, x *Shares, policy Policy) {
				const o = -5
				require.True(t, x.s.TryLock(Owned(1)))
				w := plays(t, x, o, false, policy).queue(t)
				w.a.holds = holds // as with a wait for a signal
				w.a.owed = policy == NonFair
				require.True(t, x.s.guarded(policy, drop))
				require.Equal(t, Acquired, x.Unlock(o, policy))
				require.Equal(t, holds > 1, x.s.HeldBy(o), "the waiter had %d", holds)
				stranger := locks(t, x, -2, false, policy, min(holds-1, 1))
				if holds == 1 {
					require.True(t, stranger.result(t))
					require.Equal(t, NotHeld, x.Unlock(o, policy))
				}
				w.returns(t)
				require.NoError(t, x.s.Verify())
				unlocks(t, x, o, holds-1, policy)
				if holds > 1 {
					require.True(t, stranger.result(t))
				}
				unlocks(t, x, -2, 1, policy)
			})
		})
	}
}

// Two grants to one owner are on their way at the same time.
func TestTwoGrantsOnTheirWayAreCountedOnceEach(t *testing.T) {
	for _, firstArrives := range []bool{false, true} {
		shares(t, func(t *testing.T, x *Shares, policy Policy) {
			const o = -5
			require.True(t, x.s.TryLock(Owned(1)))
			a := plays(t, x, o, false, policy).queue(t)
			b := plays(t, x, o, false, policy).queue(t)
			a.a.owed, b.a.owed = policy == NonFair, policy == NonFair
			require.True(t, x.s.guarded(policy, drop))
			require.Equal(t, Acquired, x.Unlock(o, policy)) // a's
			require.EqualValues(t, o, x.s.Owner(), "it is b's turn")
			require.Equal(t, Acquired, x.TryLock(o, false, policy))
			if firstArrives {
				a.returns(t)
				b.returns(t)
			} else {
				b.returns(t)
				a.returns(t)
			}
			require.NoError(t, x.s.Verify())
			unlocks(t, x, o, 2, policy)
		})
	}
}

// Another goroutine of the owner counts the winner's hold before the winner comes. The winner
// would have let in the others of its owner behind the stranger.
func TestAHoldCountedEarlyLetsInTheOwnersOthers(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		shares(t, func(t *testing.T, x *Shares, policy Policy) {
			const o = -5
			require.True(t, x.s.TryLock(Owned(1)))
			first := plays(t, x, o, false, policy).queue(t)
			stranger := locks(t, x, -2, false, policy, 2)
			other := locks(t, x, o, isShared, policy, 3)
			x.s.guard.Lock()
			first.a.owed = policy == NonFair
			wake, ok := x.s.advance(policy, drop)
			x.s.guard.Unlock()
			require.True(t, ok)
			unpark(wake)
			require.Equal(t, Acquired, x.TryLock(o, false, policy))
			first.returns(t)
			require.Equal(t, []int64{-2}, x.s.Waiters(), "the owner has the lock")
			require.True(t, other.result(t))
			require.NoError(t, x.s.Verify())
			if isShared {
				require.Equal(t, Acquired, x.UnlockShared(o, policy))
				unlocks(t, x, o, 2, policy)
			} else {
				unlocks(t, x, o, 3, policy)
			}
			require.True(t, stranger.result(t))
			unlocks(t, x, -2, 1, policy)
		})
	}
}

func TestTwoReadersOfOneOwnerLeaveOneHold(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		require.True(t, x.s.TryLock(Owned(1)))
		a := plays(t, x, o, true, policy).queue(t)
		b := plays(t, x, o, true, policy).queue(t)
		require.True(t, x.s.Unlock(policy))
		require.Equal(t, 2, x.s.Shared())
		require.Equal(t, Acquired, x.TryLock(o, true, policy))
		require.Equal(t, Busy, x.Upgrade(o, policy), "the others are on their way to read")
		a.returns(t)
		b.returns(t)
		require.Equal(t, 1, x.s.Shared())
		require.Equal(t, 3, x.s.holdsOf(o, true))
		require.NoError(t, x.s.Verify())
		require.Equal(t, Acquired, x.Upgrade(o, policy))
		require.Equal(t, 2, x.s.holdsOf(o, true))
		require.Equal(t, Acquired, x.Downgrade(o, policy))
		require.NoError(t, x.s.Verify())
		for range 3 {
			require.Equal(t, Acquired, x.UnlockShared(o, policy))
		}
		require.Equal(t, NotHeld, x.UnlockShared(o, policy))
	})
}

func TestACanceledWaiterThatWasLetInHasItsHold(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		require.True(t, x.s.TryLockShared())
		w := plays(t, x, o, false, policy).queue(t)
		x.s.guard.Lock()
		x.s.cancel(w.a.node, policy) // its limit has ended; it has yet to say so
		x.s.guard.Unlock()
		require.True(t, x.s.Unlock(policy))
		require.Equal(t, Acquired, x.TryLock(o, false, policy))
		require.Equal(t, Acquired, x.end(w.a, Ended), "its hold was counted")
		unlocks(t, x, o, 2, policy)
	})
}

// The owner releases while the waiter that it let in is on its way: the holds are the waiter's too.
func TestAReaderLetsInItsOwnersReadersOnly(t *testing.T) {
	const o = -5
	for name, owners := range map[string][]int64{
		"its own": {o, o, o},
		"both":    {o, -2, o, -3, o},
		"behind":  {-2, o, -3, o},
	} {
		t.Run(name, func(t *testing.T) {
			shares(t, func(t *testing.T, x *Shares, policy Policy) {
				require.Equal(t, Acquired, x.TryLock(-9, false, policy))
				var waiters []call
				writer := locks(t, x, -8, false, policy, 1)
				for i, reader := range owners {
					waiters = append(waiters, locks(t, x, reader, true, policy, i+2))
				}
				require.Equal(t, Acquired, x.Downgrade(-9, policy))
				require.Equal(t, Acquired, x.TryLock(o, true, policy), "past the writer")
				var others []int64
				for i, reader := range owners {
					if reader == o {
						require.True(t, waiters[i].result(t))
					} else {
						others = append(others, reader)
					}
				}
				require.Equal(t, append([]int64{-8}, others...), x.s.Waiters())
				require.NoError(t, x.s.Verify())
				require.Equal(t, Acquired, x.UnlockShared(-9, policy))
				for range len(owners) - len(others) + 1 {
					require.Equal(t, Acquired, x.UnlockShared(o, policy))
				}
				require.True(t, writer.result(t))
				require.Equal(t, Acquired, x.Unlock(-8, policy))
				for i, reader := range owners {
					if reader != o {
						require.True(t, waiters[i].result(t))
						require.Equal(t, Acquired, x.UnlockShared(reader, policy))
					}
				}
			})
		})
	}
}

func TestAnOwnerHasNoMoreHoldsThanCanBeCounted(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		ctx := t.Context()
		require.Equal(t, Acquired, x.Lock(ctx, Owned(o), false, policy))
		sh := x.of[o]
		sh.write, sh.by[goid.Get()], sh.read = MaxHolds, MaxHolds, MaxHolds
		require.Equal(t, TooMany, x.Lock(ctx, Owned(o), false, policy))
		require.Equal(t, TooMany, x.Lock(ctx, Owned(o), true, policy))
		require.Equal(t, TooMany, x.TryLock(o, false, policy))
		require.Equal(t, TooMany, x.TryLock(o, true, policy))
		require.Equal(t, TooMany, x.Downgrade(o, policy))
		require.Equal(t, TooMany, x.Upgrade(o, policy))
		require.Equal(t, MaxHolds, sh.write)
		require.Equal(t, MaxHolds, sh.read)
		sh.write, sh.by[goid.Get()], sh.read = 1, 1, 0
		unlocks(t, x, o, 1, policy)
	})
}

func TestAWaiterWithTooManyHoldsStaysInTheQueue(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		require.True(t, x.s.TryLock(Owned(1)))
		var waiters []played
		for _, isShared := range []bool{false, true, false} {
			waiters = append(waiters, plays(t, x, o, isShared, policy).queue(t))
		}
		waiters[0].a.owed = policy == NonFair
		waiters[2].a.holds = MaxHolds
		require.True(t, x.s.guarded(policy, drop))
		waiters[0].returns(t)
		require.Equal(t, []int64{o}, x.s.Waiters(), "with as many holds as there may be it does not fit in")
		waiters[1].returns(t)
		require.Equal(t, Acquired, x.UnlockShared(o, policy))
		unlocks(t, x, o, 1, policy)
		waiters[2].returns(t)
		require.Equal(t, MaxHolds, x.s.holdsOf(o, false))
		sh := x.of[o]
		sh.write, sh.by[goid.Get()] = 1, 1
		unlocks(t, x, o, 1, policy)
	})
}

func TestGoroutinesThatShareAnOwnerLoseNoHold(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		holders := [3]int{} // how many goroutines of each owner are inside; guarded by mu
		var mu sync.Mutex
		var wg sync.WaitGroup
		for g := range 9 {
			wg.Go(func() {
				o := -int64(g%3) - 1
				r := rand.New(rand.NewPCG(uint64(g), 3))
				for range 500 {
					var out Outcome
					if r.IntN(3) == 0 {
						out = x.TryLock(o, false, policy)
					} else {
						d := time.Duration(r.IntN(100)) * time.Microsecond
						ctx, cancel := context.WithTimeout(context.Background(), d)
						out = x.Lock(ctx, Owned(o), false, policy)
						cancel()
					}
					if out != Acquired {
						continue
					}
					inside := func(by int) {
						mu.Lock()
						holders[g%3] += by
						if holders[(g+1)%3]+holders[(g+2)%3] > 0 {
							t.Error("two owners are inside")
						}
						mu.Unlock()
					}
					inside(1)
					runtime.Gosched()
					inside(-1)
					if x.Unlock(o, policy) != Acquired {
						t.Error("a hold was lost")
					}
				}
			})
		}
		wg.Wait()
	})
}

// All goroutines share one owner, and no other owner holds: a try may not fail.
func TestATryAmongGoroutinesOfOneOwnerNeverFails(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		const o = -5
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for k := range 2000 {
					out := Acquired
					if g == 0 && k%2 == 0 {
						out = x.Lock(context.Background(), Owned(o), false, policy)
					} else {
						out = x.TryLock(o, false, policy)
					}
					if out != Acquired {
						t.Error("nobody else holds:", out)
					}
					if x.Unlock(o, policy) != Acquired {
						t.Error("a hold was lost")
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestWaitsForASignalLoseNoSharedHold(t *testing.T) {
	shares(t, func(t *testing.T, x *Shares, policy Policy) {
		var (
			c           = NewCond(x.s, policy)
			all, others sync.WaitGroup
			stop        atomic.Bool
			refused     atomic.Int32
		)
		must := func(out Outcome) {
			if out != Acquired {
				t.Error("a hold was lost or refused:", out)
			}
		}
		for i := range 6 {
			o := int64(-5 - i%2)
			all.Go(func() {
				for k := range 120 {
					must(x.Lock(context.Background(), Owned(o), false, policy))
					if k%3 == 0 {
						must(x.Lock(context.Background(), Owned(o), false, policy))
						ctx, cancel := context.Background(), context.CancelFunc(func() {})
						if k%2 == 0 {
							ctx, cancel = context.WithTimeout(ctx, time.Duration(k)*time.Microsecond)
						}
						if _, out := x.Wait(ctx, c, Owned(o)); out == OthersHold {
							refused.Add(1)
						} else {
							must(out)
						}
						cancel()
						must(x.Unlock(o, policy))
					}
					must(x.Unlock(o, policy))
				}
			})
		}
		others.Go(func() {
			for !stop.Load() {
				must(x.Lock(context.Background(), Owned(-7), false, policy))
				x.Signal(c, -7, true)
				must(x.Unlock(-7, policy))
			}
		})
		all.Wait()
		stop.Store(true)
		others.Wait()
		t.Log("waits refused:", refused.Load())
	})
}

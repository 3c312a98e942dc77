package shares

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/syncq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hang = time.Minute

// eventually waits until ok is true.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !ok(); runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "did not happen")
	}
}

// call is a call in a goroutine of its own.
type call struct{ done chan bool }

func run(f func() bool) call {
	c := call{make(chan bool, 1)}
	go func() { c.done <- f() }()
	return c
}

func (c call) result(t *testing.T) bool {
	t.Helper()
	select {
	case ok := <-c.done:
		return ok
	case <-time.After(hang):
		require.FailNow(t, "stuck")
		return false
	}
}

// bothPolicies runs f with a lock of each policy, which f leaves free.
func bothPolicies(t *testing.T, f func(t *testing.T, x *Shares)) {
	readWrite(t, func(t *testing.T, x *Shares, _ *syncq.ReadWrite) { f(t, x) })
}

// readWrite is bothPolicies with the lock.
func readWrite(t *testing.T, f func(t *testing.T, x *Shares, rw *syncq.ReadWrite)) {
	for name, policy := range map[string]syncq.Policy{"NonFair": syncq.NonFair, "FIFO": syncq.FIFO} {
		t.Run(name, func(t *testing.T) {
			s := syncq.NewReadWrite(policy)
			x := Of(&s.Sync)
			f(t, x, &s)
			require.NoError(t, x.verify())
			require.Empty(t, x.of)
			require.Zero(t, s.Word.Load())
			require.Zero(t, s.Len())
		})
	}
}

// played is a wait of an explicit owner whose first and last step the test plays. Between the two
// the other goroutines of the owner may do anything.
type played struct {
	x    *Shares
	a    *attempt
	wait call // of the waiter in the queue of the Sync
}

// plays begins a wait for x, which the owner may not reenter now.
func plays(t *testing.T, x *Shares, owner int64, isShared bool, l *park.Limit) *played {
	t.Helper()
	p := &played{x: x}
	x.with(owner, func(sh *share) syncq.Outcome {
		p.a = sh.begin(x.s.NewWaiter(syncq.Owned(owner), isShared, l), isShared, 1)
		return syncq.Acquired
	})
	return p
}

// queue starts the wait, and returns when the waiter is in the queue.
func (p *played) queue(t *testing.T) *played {
	t.Helper()
	before := p.x.s.Len()
	p.wait = run(func() bool { return p.a.Acquire() == syncq.Acquired })
	eventually(t, func() bool { return p.x.s.Len() == before+1 })
	return p
}

// returns waits until the waiter has the lock or is dismissed, and ends its wait.
func (p *played) returns(t *testing.T) {
	t.Helper()
	require.True(t, p.wait.result(t))
	require.Equal(t, syncq.Acquired, p.x.end(p.a, syncq.Acquired))
}

// has waits until the word names owner, one of whose waiters a release has woken.
func has(t *testing.T, x *Shares, owner int64) {
	t.Helper()
	eventually(t, func() bool { return x.s.HeldBy(owner) })
}

// locks starts a goroutine that waits for x, and returns when it is in the queue.
func locks(t *testing.T, x *Shares, owner int64, isShared bool, at int) call {
	t.Helper()
	c := run(func() bool {
		return x.Lock(context.Background(), syncq.Owned(owner), isShared) == syncq.Acquired
	})
	eventually(t, func() bool { return x.s.Len() == at })
	return c
}

// condWait has a goroutine of owner acquire n holds of x, and wait for c. The result is whether
// it was signalled.
func condWait(
	t *testing.T, x *Shares, ctx context.Context, c *syncq.Cond, owner int64, n, at int,
) call {
	t.Helper()
	w := run(func() bool {
		for range n {
			if x.Lock(context.Background(), syncq.Owned(owner), false) != syncq.Acquired {
				t.Error("no hold")
			}
		}
		signalled, out := x.Wait(ctx, c, syncq.Owned(owner))
		if out != syncq.Acquired {
			t.Error("the wait was refused:", out)
		}
		return signalled
	})
	eventually(t, func() bool { return c.Len() == at })
	return w
}

// verify checks the counts of x against each other and against the word.
func (x *Shares) verify() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner, sh := range x.of {
		n := 0
		for _, h := range sh.by {
			n += h
		}
		switch {
		case sh.owner != owner || n != sh.write:
			return fmt.Errorf("owner %d has %d exclusive holds: %+v", owner, n, sh)
		case sh.write > 0 && !x.s.HeldBy(owner):
			return fmt.Errorf("owner %d has exclusive holds, and %d has the lock", owner, x.s.Owner())
		case sh.inside != (sh.read > 0 && sh.write == 0):
			return fmt.Errorf("owner %d disagrees with its hold in the word: %+v", owner, sh)
		case sh.inside && x.s.Shared() == 0:
			return errors.New("the word has no shared hold")
		case sh.write+sh.read+len(sh.waits) == 0:
			return fmt.Errorf("owner %d is kept for nothing", owner)
		}
	}
	return nil
}

// holdsOf returns how many shared or exclusive holds owner has.
func (x *Shares) holdsOf(owner int64, isShared bool) int {
	write, read := x.Holds(owner)
	if isShared {
		return read
	}
	return write
}

// unlocks gives back n exclusive holds, which are all of them.
func unlocks(t *testing.T, x *Shares, owner int64, n int) {
	t.Helper()
	for k := range n {
		require.Equal(t, n-k, x.holdsOf(owner, false))
		require.Equal(t, syncq.Acquired, x.Unlock(owner))
	}
	require.Zero(t, x.holdsOf(owner, false))
}

func TestWaitersOfOneExplicitOwnerGetLockTogether(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		require.True(t, x.s.TryLock(syncq.Owned(1)))
		var waiters []call
		for i, o := range []int64{-5, -2, -5, -3, -5} {
			waiters = append(waiters, locks(t, x, o, false, i+1))
		}
		require.True(t, x.s.Unlock())
		for _, i := range []int{0, 2, 4} {
			require.True(t, waiters[i].result(t))
		}
		require.EqualValues(t, -5, x.s.Owner())
		require.Equal(t, []int64{-2, -3}, x.s.Waiters())
		require.NoError(t, x.verify())
		unlocks(t, x, -5, 3)
		require.Equal(t, syncq.NotHeld, x.Unlock(-5))
		require.True(t, waiters[1].result(t))
		unlocks(t, x, -2, 1)
		require.True(t, waiters[3].result(t))
		unlocks(t, x, -3, 1)
	})
}

// The memory would be cleared at each later release too.
func TestAnOwnersCrowdLeavesNoMemory(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		require.True(t, x.s.TryLock(syncq.Owned(1)))
		var crowd []call
		for i := range 100 {
			crowd = append(crowd, locks(t, x, -5, false, i+1))
		}
		require.True(t, x.s.Unlock())
		for _, c := range crowd {
			require.True(t, c.result(t))
		}
		unlocks(t, x, -5, len(crowd))
		require.Nil(t, x.spare)
		require.Equal(t, syncq.Acquired, x.TryLock(-5, false))
		unlocks(t, x, -5, 1)
		require.Zero(t, cap(x.spare.waits))
	})
}

func TestASignalledWaiterBringsInItsOwnersOthers(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		c := syncq.NewCond(x.s, x.s.Policy())
		back := condWait(t, x, context.Background(), c, -5, 2, 1)
		require.True(t, x.s.TryLock(syncq.Owned(1)))
		require.True(t, c.Signal())
		var waiters []call
		for i, o := range []int64{-2, -5, -5} {
			waiters = append(waiters, locks(t, x, o, false, i+2))
		}
		require.True(t, x.s.Unlock())
		require.True(t, back.result(t))
		require.True(t, waiters[1].result(t))
		require.True(t, waiters[2].result(t))
		require.Equal(t, []int64{-2}, x.s.Waiters())
		unlocks(t, x, -5, 4)
		require.True(t, waiters[0].result(t))
		unlocks(t, x, -2, 1)
	})
}

// Two waiters of an owner wait for a signal, one after the other, while a third goroutine of it
// holds the lock whenever it signals. A partial release lets nobody in: the waiter must come back
// with the signal.
func TestSignalledWaiterOfHolderComesBackAtOnce(t *testing.T) {
	for _, all := range []bool{false, true} {
		bothPolicies(t, func(t *testing.T, x *Shares) {
			const o = -5
			c := syncq.NewCond(x.s, x.s.Policy())
			waiters := []call{
				condWait(t, x, context.Background(), c, o, 1, 1),
				condWait(t, x, context.Background(), c, o, 1, 2),
			}
			require.Equal(t, syncq.Acquired, x.Lock(t.Context(), syncq.Owned(o), false))
			for i, w := range waiters {
				if !all || i == 0 {
					x.Signal(c, o, all)
				}
				require.True(t, w.result(t), "without an unlock of the signalling goroutine")
				require.NoError(t, x.verify())
			}
			require.Zero(t, x.s.Len())
			unlocks(t, x, o, 3)
		})
	}
}

func TestCancelledWaiterOfHolderComesBackAtOnce(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		const o = -5
		c := syncq.NewCond(x.s, x.s.Policy())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := condWait(t, x, ctx, c, o, 2, 1)
		require.Equal(t, syncq.Acquired, x.Lock(t.Context(), syncq.Owned(o), false))
		other := locks(t, x, -2, false, 1)
		cancel()
		require.False(t, w.result(t), "past the waiters")
		require.Equal(t, []int64{-2}, x.s.Waiters())
		require.NoError(t, x.verify())
		unlocks(t, x, o, 3)
		require.True(t, other.result(t))
		unlocks(t, x, -2, 1)
	})
}

func TestWaiterIsLetInWithItsOwnersHold(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		const o = -5
		require.True(t, x.s.TryLock(syncq.Owned(1)))
		first := plays(t, x, o, false, nil).queue(t)
		reader := plays(t, x, o, true, nil).queue(t)
		late := plays(t, x, o, false, nil) // has not come to the queue yet
		stranger := locks(t, x, -2, false, 3)
		require.True(t, x.s.Unlock())
		first.returns(t)
		require.Equal(t, []int64{-2}, x.s.Waiters())
		require.Equal(t, 2, x.holdsOf(o, false))
		require.Equal(t, 1, x.holdsOf(o, true))
		require.Equal(t, syncq.Acquired, late.a.Acquire(), "it does not join the queue any more")
		require.Equal(t, syncq.Acquired, x.end(late.a, syncq.Acquired))
		reader.returns(t)
		require.NoError(t, x.verify())
		unlocks(t, x, o, 2)
		require.Equal(t, syncq.Acquired, x.UnlockShared(o))
		require.True(t, stranger.result(t))
		unlocks(t, x, -2, 1)
	})
}

func TestAWaitNeverGivesUpOthersHolds(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		const o = -5
		c := syncq.NewCond(x.s, x.s.Policy())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		refused := func(want syncq.Outcome) {
			t.Helper()
			signalled, out := x.Wait(ended, c, syncq.Owned(o))
			require.False(t, signalled)
			require.Equal(t, want, out)
			require.Zero(t, c.Len())
			require.NoError(t, x.verify())
		}
		refused(syncq.NotHeld)
		calls, outs := make(chan func() syncq.Outcome), make(chan syncq.Outcome)
		defer close(calls)
		go func() { // one other goroutine of the owner
			for f := range calls {
				outs <- f()
			}
		}()
		other := func(f func() syncq.Outcome) {
			t.Helper()
			calls <- f
			require.Equal(t, syncq.Acquired, <-outs)
		}
		take := func() syncq.Outcome { return x.Lock(context.Background(), syncq.Owned(o), false) }

		require.Equal(t, syncq.Acquired, take())
		other(take)
		refused(syncq.OthersHold)
		require.Equal(t, 2, x.holdsOf(o, false))
		other(func() syncq.Outcome { return x.Unlock(o) })
		require.Equal(t, syncq.Acquired, take())
		refused(syncq.Acquired) // both holds are its own
		require.Equal(t, 2, x.holdsOf(o, false))
		unlocks(t, x, o, 2)

		other(take) // the other goroutine's
		refused(syncq.Acquired)
		require.Equal(t, 1, x.holdsOf(o, false), "a single hold may be anybody's")
		other(take)
		refused(syncq.OthersHold)
		unlocks(t, x, o, 2)

		require.Equal(t, syncq.Acquired, take())
		require.Equal(t, syncq.Acquired, x.Lock(t.Context(), syncq.Owned(o), true))
		refused(syncq.Upgrade)
		require.Equal(t, syncq.Acquired, x.UnlockShared(o))
		unlocks(t, x, o, 1)
	})
}

// While the winner is on its way, the word names the owner, and no hold is counted.
func TestTryNeverFailsWhileItsOwnerComesIn(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		bothPolicies(t, func(t *testing.T, x *Shares) {
			const o = -5
			require.True(t, x.s.TryLock(syncq.Owned(1)))
			w := plays(t, x, o, false, nil).queue(t)
			require.True(t, x.s.Unlock())
			has(t, x, o) // and its wait is not over
			if isShared {
				require.Equal(t, syncq.Acquired, x.TryLock(o, true))
			} else {
				require.Equal(t, syncq.Acquired, x.TryLock(o, false))
			}
			require.Equal(t, syncq.Busy, x.TryLock(-2, false))
			w.returns(t)
			require.NoError(t, x.verify())
			if isShared {
				require.Equal(t, syncq.Acquired, x.UnlockShared(o))
				unlocks(t, x, o, 1)
			} else {
				unlocks(t, x, o, 2)
			}
		})
	}
}

// The other goroutine ends one of the holds that the waiter has just got back, before the
// waiter runs.
func TestAHoldMayEndBeforeItsWaiterArrives(t *testing.T) {
	for holds := 1; holds <= 3; holds++ {
		t.Run(fmt.Sprint(holds), func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, x *Shares) {
				const o = -5
				require.True(t, x.s.TryLock(syncq.Owned(1)))
				w := plays(t, x, o, false, nil).queue(t)
				w.a.holds = holds // as with a wait for a signal
				require.True(t, x.s.Unlock())
				has(t, x, o)
				require.Equal(t, syncq.Acquired, x.Unlock(o))
				require.Equal(t, holds > 1, x.s.HeldBy(o), "the waiter had %d", holds)
				stranger := locks(t, x, -2, false, min(holds-1, 1))
				if holds == 1 {
					require.True(t, stranger.result(t))
					require.Equal(t, syncq.NotHeld, x.Unlock(o))
				}
				w.returns(t)
				require.NoError(t, x.verify())
				unlocks(t, x, o, holds-1)
				if holds > 1 {
					require.True(t, stranger.result(t))
				}
				unlocks(t, x, -2, 1)
			})
		})
	}
}

// Two grants to one owner are on their way at the same time.
func TestTwoGrantsUnderWayAreCountedOnceEach(t *testing.T) {
	for _, firstArrives := range []bool{false, true} {
		bothPolicies(t, func(t *testing.T, x *Shares) {
			const o = -5
			require.True(t, x.s.TryLock(syncq.Owned(1)))
			a := plays(t, x, o, false, nil).queue(t)
			b := plays(t, x, o, false, nil).queue(t)
			require.True(t, x.s.Unlock())
			has(t, x, o)
			require.Equal(t, syncq.Acquired, x.Unlock(o)) // a's
			has(t, x, o)                                  // it is b's turn
			require.Equal(t, syncq.Acquired, x.TryLock(o, false))
			if firstArrives {
				a.returns(t)
				b.returns(t)
			} else {
				b.returns(t)
				a.returns(t)
			}
			require.NoError(t, x.verify())
			unlocks(t, x, o, 2)
		})
	}
}

// Another goroutine of the owner counts the winner's hold before the winner comes. The winner
// would have let in the others of its owner behind the stranger.
func TestHoldCountedEarlyLetsInTheOwnersOthers(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		bothPolicies(t, func(t *testing.T, x *Shares) {
			const o = -5
			require.True(t, x.s.TryLock(syncq.Owned(1)))
			first := plays(t, x, o, false, nil).queue(t)
			stranger := locks(t, x, -2, false, 2)
			other := locks(t, x, o, isShared, 3)
			require.True(t, x.s.Unlock())
			has(t, x, o)
			require.Equal(t, syncq.Acquired, x.TryLock(o, false))
			first.returns(t)
			require.Equal(t, []int64{-2}, x.s.Waiters(), "the owner has the lock")
			require.True(t, other.result(t))
			require.NoError(t, x.verify())
			if isShared {
				require.Equal(t, syncq.Acquired, x.UnlockShared(o))
				unlocks(t, x, o, 2)
			} else {
				unlocks(t, x, o, 3)
			}
			require.True(t, stranger.result(t))
			unlocks(t, x, -2, 1)
		})
	}
}

func TestTwoReadersOfOneOwnerLeaveOneHold(t *testing.T) {
	readWrite(t, func(t *testing.T, x *Shares, rw *syncq.ReadWrite) {
		const o = -5
		require.True(t, x.s.TryLock(syncq.Owned(1)))
		a := plays(t, x, o, true, nil).queue(t)
		b := plays(t, x, o, true, nil).queue(t)
		require.True(t, x.s.Unlock())
		require.Equal(t, 2, x.s.Shared())
		require.Equal(t, syncq.Acquired, x.TryLock(o, true))
		require.Equal(t, syncq.Busy, x.Upgrade(rw, o), "the others are on their way to read")
		a.returns(t)
		b.returns(t)
		require.Equal(t, 1, x.s.Shared())
		require.Equal(t, 3, x.holdsOf(o, true))
		require.NoError(t, x.verify())
		require.Equal(t, syncq.Acquired, x.Upgrade(rw, o))
		require.Equal(t, 2, x.holdsOf(o, true))
		require.Equal(t, syncq.Acquired, x.Downgrade(o))
		require.NoError(t, x.verify())
		for range 3 {
			require.Equal(t, syncq.Acquired, x.UnlockShared(o))
		}
		require.Equal(t, syncq.NotHeld, x.UnlockShared(o))
	})
}

func TestACancelledAdmittedWaiterHasItsHold(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		const o = -5
		ctx, cancel := context.WithCancel(t.Context())
		require.True(t, x.s.TryLockShared())
		w := plays(t, x, o, false, park.Until(ctx)).queue(t)
		cancel()
		require.False(t, w.wait.result(t)) // its limit has ended; it has yet to say so
		require.True(t, x.s.Unlock())
		require.Equal(t, syncq.Acquired, x.TryLock(o, false))
		require.Equal(t, syncq.Acquired, x.end(w.a, syncq.Ended), "its hold was counted")
		unlocks(t, x, o, 2)
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
			bothPolicies(t, func(t *testing.T, x *Shares) {
				require.Equal(t, syncq.Acquired, x.TryLock(-9, false))
				var waiters []call
				writer := locks(t, x, -8, false, 1)
				for i, reader := range owners {
					waiters = append(waiters, locks(t, x, reader, true, i+2))
				}
				require.Equal(t, syncq.Acquired, x.Downgrade(-9))
				require.Equal(t, syncq.Acquired, x.TryLock(o, true), "past the writer")
				var others []int64
				for i, reader := range owners {
					if reader == o {
						require.True(t, waiters[i].result(t))
					} else {
						others = append(others, reader)
					}
				}
				require.Equal(t, append([]int64{-8}, others...), x.s.Waiters())
				require.NoError(t, x.verify())
				require.Equal(t, syncq.Acquired, x.UnlockShared(-9))
				for range len(owners) - len(others) + 1 {
					require.Equal(t, syncq.Acquired, x.UnlockShared(o))
				}
				require.True(t, writer.result(t))
				require.Equal(t, syncq.Acquired, x.Unlock(-8))
				for i, reader := range owners {
					if reader != o {
						require.True(t, waiters[i].result(t))
						require.Equal(t, syncq.Acquired, x.UnlockShared(reader))
					}
				}
			})
		})
	}
}

func TestAnOwnerHasNoMoreThanMaxHolds(t *testing.T) {
	readWrite(t, func(t *testing.T, x *Shares, rw *syncq.ReadWrite) {
		const o = -5
		ctx := t.Context()
		require.Equal(t, syncq.Acquired, x.Lock(ctx, syncq.Owned(o), false))
		sh := x.of[o]
		sh.write, sh.by[goid.Get()], sh.read = syncq.MaxHolds, syncq.MaxHolds, syncq.MaxHolds
		require.Equal(t, syncq.TooMany, x.Lock(ctx, syncq.Owned(o), false))
		require.Equal(t, syncq.TooMany, x.Lock(ctx, syncq.Owned(o), true))
		require.Equal(t, syncq.TooMany, x.TryLock(o, false))
		require.Equal(t, syncq.TooMany, x.TryLock(o, true))
		require.Equal(t, syncq.TooMany, x.Downgrade(o))
		require.Equal(t, syncq.TooMany, x.Upgrade(rw, o))
		require.Equal(t, syncq.MaxHolds, sh.write)
		require.Equal(t, syncq.MaxHolds, sh.read)
		sh.write, sh.by[goid.Get()], sh.read = 1, 1, 0
		unlocks(t, x, o, 1)
	})
}

func TestWaiterWithTooManyHoldsStaysInQueue(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		const o = -5
		require.True(t, x.s.TryLock(syncq.Owned(1)))
		var waiters []*played
		for _, isShared := range []bool{false, true, false} {
			waiters = append(waiters, plays(t, x, o, isShared, nil).queue(t))
		}
		waiters[2].a.holds = syncq.MaxHolds
		require.True(t, x.s.Unlock())
		waiters[0].returns(t)
		require.Equal(t, []int64{o}, x.s.Waiters(), "with as many holds as there may be it does not fit in")
		waiters[1].returns(t)
		require.Equal(t, syncq.Acquired, x.UnlockShared(o))
		require.Equal(t, syncq.Acquired, x.Unlock(o))
		waiters[2].returns(t)
		require.Equal(t, syncq.MaxHolds, x.holdsOf(o, false))
		sh := x.of[o]
		sh.write, sh.by[goid.Get()] = 1, 1
		unlocks(t, x, o, 1)
	})
}

func TestGoroutinesThatShareAnOwnerLoseNoHold(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		holders := [3]int{} // how many goroutines of each owner are inside; guarded by mu
		var mu sync.Mutex
		var wg sync.WaitGroup
		for g := range 9 {
			wg.Go(func() {
				o := -int64(g%3) - 1
				r := rand.New(rand.NewPCG(uint64(g), 3))
				for range 500 {
					var out syncq.Outcome
					if r.IntN(3) == 0 {
						out = x.TryLock(o, false)
					} else {
						d := time.Duration(r.IntN(100)) * time.Microsecond
						ctx, cancel := context.WithTimeout(context.Background(), d)
						out = x.Lock(ctx, syncq.Owned(o), false)
						cancel()
					}
					if out != syncq.Acquired {
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
					if x.Unlock(o) != syncq.Acquired {
						t.Error("a hold was lost")
					}
				}
			})
		}
		wg.Wait()
	})
}

// All goroutines share one owner, and no other owner holds: a try may not fail.
func TestTryAmongGoroutinesOfOneOwnerNeverFails(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		const o = -5
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for k := range 2000 {
					out := syncq.Acquired
					if g == 0 && k%2 == 0 {
						out = x.Lock(context.Background(), syncq.Owned(o), false)
					} else {
						out = x.TryLock(o, false)
					}
					if out != syncq.Acquired {
						t.Error("nobody else holds:", out)
					}
					if x.Unlock(o) != syncq.Acquired {
						t.Error("a hold was lost")
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestWaitsForASignalLoseNoSharedHold(t *testing.T) {
	bothPolicies(t, func(t *testing.T, x *Shares) {
		var (
			c           = syncq.NewCond(x.s, x.s.Policy())
			all, others sync.WaitGroup
			stop        atomic.Bool
			refused     atomic.Int32
		)
		must := func(out syncq.Outcome) {
			if out != syncq.Acquired {
				t.Error("a hold was lost or refused:", out)
			}
		}
		for i := range 6 {
			o := int64(-5 - i%2)
			all.Go(func() {
				for k := range 120 {
					must(x.Lock(context.Background(), syncq.Owned(o), false))
					if k%3 == 0 {
						must(x.Lock(context.Background(), syncq.Owned(o), false))
						ctx, cancel := context.Background(), context.CancelFunc(func() {})
						if k%2 == 0 {
							ctx, cancel = context.WithTimeout(ctx, time.Duration(k)*time.Microsecond)
						}
						if _, out := x.Wait(ctx, c, syncq.Owned(o)); out == syncq.OthersHold {
							refused.Add(1)
						} else {
							must(out)
						}
						cancel()
						must(x.Unlock(o))
					}
					must(x.Unlock(o))
				}
			})
		}
		others.Go(func() {
			for !stop.Load() {
				must(x.Lock(context.Background(), syncq.Owned(-7), false))
				x.Signal(c, -7, true)
				must(x.Unlock(-7))
			}
		})
		all.Wait()
		stop.Store(true)
		others.Wait()
		t.Log("waits refused:", refused.Load())
	})
}

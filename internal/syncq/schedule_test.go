package syncq

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests hold the guard to stop others at the point where they need it, and so
// bring about the rare orders of events one at a time.

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("did not happen")
		}
	}
}

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
	case <-time.After(10 * time.Second):
		t.Fatal("stuck")
		return false
	}
}

func TestAWakeUpOnItsWayToAWaiterThatGivesUpGoesToTheNext(t *testing.T) {
	var s Sync
	stop := make(chan struct{})
	require.True(t, s.TryLock(Owned(1)))
	first := run(func() bool {
		return s.waitLimited(newNode(Owned(2), false), NonFair, limit{ctx: stop})
	})
	eventually(t, func() bool { return s.Len() == 1 })
	second := run(func() bool { s.Lock(Owned(3), NonFair); return true })
	eventually(t, func() bool { return s.Len() == 2 })

	s.guard.Lock()
	release := run(func() bool { return s.Unlock(NonFair) })
	eventually(t, func() bool { return s.Word.Load() == queued|woken }) // freed; owes the wake-up
	close(stop)
	runtime.Gosched()
	s.guard.Unlock() // the release and the leaver race for it

	require.True(t, release.result(t))
	if first.result(t) { // woken before it looked at stop
		s.Unlock(NonFair)
	}
	require.True(t, second.result(t))
	require.True(t, s.Unlock(NonFair))
	require.NoError(t, s.Verify())
	require.Zero(t, s.Word.Load())
}

func TestABargerBetweenTheReleaseAndItsWakeUpTakesOverTheDuty(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	waiter := run(func() bool { s.Lock(Owned(2), NonFair); return true })
	eventually(t, func() bool { return s.Len() == 1 })

	s.guard.Lock()
	release := run(func() bool { return s.Unlock(NonFair) })
	eventually(t, func() bool { return s.Word.Load() == queued|woken })
	require.True(t, s.TryLock(Owned(3)))
	require.True(t, s.Unlock(NonFair), "does not wait for the guard, since the wake-up is under way")
	require.True(t, s.TryLock(Owned(3)))
	s.guard.Unlock()

	require.True(t, release.result(t))
	// Roused, lost, asleep again; owed the lock if that took long.
	eventually(t, func() bool { return s.Word.Load()&^handoff == value(3)|queued })
	require.True(t, s.Unlock(NonFair))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock(NonFair))
	require.Zero(t, s.Word.Load())
}

func TestAFirstWaiterThatLostTooOftenIsHandedTheLock(t *testing.T) {
	var s Sync
	barger := Owned(1)
	require.True(t, s.TryLock(barger))
	waiter := run(func() bool { s.Lock(Owned(2), NonFair); return true })
	eventually(t, func() bool { return s.Len() == 1 })
	losses := 0
	for s.Word.Load()&handoff == 0 {
		// With the guard held the release cannot rouse the waiter before the barger is back.
		s.guard.Lock()
		release := run(func() bool { return s.Unlock(NonFair) })
		eventually(t, func() bool { return s.Word.Load() == queued|woken })
		require.True(t, s.TryLock(barger))
		s.guard.Unlock()
		require.True(t, release.result(t))
		eventually(t, func() bool { return s.Word.Load()&woken == 0 })
		losses++
		require.LessOrEqual(t, losses, maxLost)
	}
	require.True(t, s.Unlock(NonFair))
	require.False(t, s.TryLock(barger), "handed over, never free")
	require.True(t, waiter.result(t))
	require.EqualValues(t, 2, s.Owner())
	require.True(t, s.Unlock(NonFair))
	require.Zero(t, s.Word.Load())
}

func TestAGrantAndATimeOutTogetherAreOneOrTheOther(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		for range 200 {
			var s Sync
			stop := make(chan struct{})
			require.True(t, s.TryLock(Owned(1)))
			waiter := run(func() bool {
				return s.waitLimited(newNode(Owned(2), false), policy, limit{ctx: stop})
			})
			eventually(t, func() bool { return s.Len() == 1 })
			s.guard.Lock()
			release := run(func() bool { return s.Unlock(policy) })
			close(stop)
			s.guard.Unlock()
			require.True(t, release.result(t))
			if waiter.result(t) {
				require.EqualValues(t, 2, s.Owner())
				require.True(t, s.Unlock(policy))
			}
			require.NoError(t, s.Verify())
			require.Zero(t, s.Word.Load())
		}
	}
}

func TestUnderFIFOALockThatSomebodyWaitsForIsNeverFree(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	waiter := run(func() bool { s.Lock(Owned(2), FIFO); return true })
	eventually(t, func() bool { return s.Len() == 1 })
	require.True(t, s.Unlock(FIFO))
	require.EqualValues(t, 2, s.Owner(), "before the waiter has run")
	require.False(t, s.TryLock(Owned(1)))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock(FIFO))
	require.False(t, s.Unlock(FIFO), "it is free")
}

func TestOwnersOfEitherSignFitTheWord(t *testing.T) {
	for _, o := range []int64{1, -1, 1 << 56, -(1 << 56), 1<<57 - 1, -(1 << 57)} {
		var s Sync
		require.True(t, s.TryLock(Owned(o)))
		require.Equal(t, o, s.Owner())
		require.True(t, s.HeldBy(o))
		require.False(t, s.HeldBy(o^1))
		require.True(t, s.LockOrReenter(o))
		require.True(t, s.LeaveOrUnlock(o))
		require.True(t, s.LeaveOrUnlock(o))
		require.Zero(t, s.Word.Load())
	}
}

func TestAContendedLockAllocatesNothingInTheSteadyState(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		var s Sync
		stop := false // guarded by s
		other := run(func() bool {
			for {
				s.Lock(Owned(2), policy)
				end := stop
				runtime.Gosched() // so that the other has to wait
				s.Unlock(policy)
				if end {
					return true
				}
			}
		})
		allocs := testing.AllocsPerRun(500, func() {
			s.Lock(Owned(1), policy)
			runtime.Gosched()
			s.Unlock(policy)
		})
		s.Lock(Owned(1), policy)
		stop = true
		s.Unlock(policy)
		other.result(t)
		if !raceEnabled { // under which sync.Pool drops at random
			require.Zero(t, allocs, "FIFO=%v", policy)
		}
	}
}

func TestAWaiterThatWaitedForTooLongIsHandedTheLockAfterOneLostRace(t *testing.T) {
	for _, waited := range []time.Duration{maxBarging / 2, maxBarging} {
		for lost := false; !lost; {
			synctest.Test(t, func(t *testing.T) {
				var s Sync
				s.Lock(Owned(1), NonFair)
				var wg sync.WaitGroup
				wg.Go(func() {
					s.Lock(Owned(2), NonFair)
					s.Unlock(NonFair)
				})
				synctest.Wait()
				time.Sleep(waited)
				s.Unlock(NonFair)
				if s.TryLock(Owned(3)) {
					synctest.Wait()
					// Else the waiter was faster, and may even be done: once more.
					if lost = s.Len() == 1; lost {
						require.Equal(t, waited >= maxBarging, s.Word.Load()&handoff != 0, "after %v", waited)
					}
					s.Unlock(NonFair)
				}
				wg.Wait()
			})
		}
	}
}

func TestTheWaitersOfABroadcastAreHandedTheLockOneAfterTheOther(t *testing.T) {
	var s Sync
	c := NewCond(&s, NonFair)
	var waiters []call
	for i := range 3 {
		waiters = append(waiters, run(func() bool {
			p := Owned(int64(i + 2))
			s.Lock(p, NonFair)
			c.Wait(p)
			return true
		}))
		eventually(t, func() bool { return c.Len() == i+1 && !s.Held() })
	}
	barger := Owned(1)
	require.True(t, s.TryLock(barger))
	require.Equal(t, 3, c.Broadcast())
	for i, w := range waiters {
		require.True(t, s.Unlock(NonFair))
		require.EqualValues(t, i+2, s.Owner(), "before it has run")
		require.False(t, s.TryLock(barger))
		require.True(t, w.result(t))
		require.NoError(t, s.Verify())
	}
	require.True(t, s.Unlock(NonFair))
	require.Zero(t, s.Word.Load())
}

func TestASignalledWaiterRacesForTheLock(t *testing.T) {
	var s Sync
	c := NewCond(&s, NonFair)
	waiter := run(func() bool {
		s.Lock(Owned(2), NonFair)
		c.Wait(Owned(2))
		return true
	})
	eventually(t, func() bool { return c.Len() == 1 && !s.Held() })
	require.True(t, s.TryLock(Owned(1)))
	require.Equal(t, 1, c.Broadcast(), "of one is a signal")
	s.guard.Lock()
	release := run(func() bool { return s.Unlock(NonFair) })
	eventually(t, func() bool { return s.Word.Load() == queued|woken }) // free for anybody
	s.guard.Unlock()
	require.True(t, release.result(t))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock(NonFair))
	require.Zero(t, s.Word.Load())
}

func TestTheSecondOfTwoUnlocksOfOneHoldFindsTheLockFree(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		var s Sync
		require.True(t, s.TryLock(Anonymous(1)))
		s.guard.Lock()
		s.Word.Or(queued | handoff) // somebody waits, so that both go to the guard
		one, other := run(func() bool { return s.Unlock(policy) }), run(func() bool { return s.Unlock(policy) })
		time.Sleep(20 * time.Millisecond) // which nobody can see; where it is too short, neither is wrong
		s.clear(0)                        // the waiter has given up
		s.guard.Unlock()
		require.NotEqual(t, one.result(t), other.result(t))
		require.Zero(t, s.Word.Load())
		require.NoError(t, s.Verify())
	}
}

func TestAWaiterThatGivesUpTakesTheUnparkThatIsOnItsWay(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Anonymous(1)))
	stop := make(chan struct{})
	waiter := run(func() bool { return s.waitLimited(newNode(Anonymous(2), false), NonFair, limit{ctx: stop}) })
	eventually(t, func() bool { return s.Len() == 1 })
	s.guard.Lock()
	n := s.rouse() // by a release that has yet to unpark
	s.guard.Unlock()
	close(stop)
	eventually(t, func() bool { return s.Len() == 0 })
	time.Sleep(20 * time.Millisecond) // for it not to come back
	require.Empty(t, waiter.done, "its node could be another's by the time of the unpark")
	unpark(n)
	require.False(t, waiter.result(t))
	require.True(t, s.Unlock(NonFair))
}

// panicky is a lock of others that does not let its holder go.
type panicky struct{ unlock chan struct{} }

func (panicky) Lock()     {}
func (p panicky) Unlock() { <-p.unlock; panic("no") }

func TestAWaitThatDoesNotComeAboutTakesTheUnparkThatIsOnItsWay(t *testing.T) {
	l := panicky{make(chan struct{})}
	c := NewCondOver(l)
	waiter := run(func() (panics bool) {
		defer func() { panics = recover() != nil }()
		c.Wait(Anonymous(1))
		return false
	})
	eventually(t, func() bool { return c.Len() == 1 })
	c.s.guard.Lock() // a signal that has yet to unpark
	n := c.queue.head
	c.queue.remove(n)
	require.True(t, c.s.Word.CompareAndSwap(0, n.value))
	n.state.Store(granted)
	c.s.guard.Unlock()
	close(l.unlock)
	time.Sleep(20 * time.Millisecond) // for it not to come back
	require.Empty(t, waiter.done)
	n.place.Unpark()
	require.True(t, waiter.result(t))
	require.Zero(t, c.s.Word.Load())
}

func TestHoldsThatSeveralWaitsOfAnOwnerBringBackAreCountedBeyondWhatItMayTake(t *testing.T) {
	const o = -5
	for _, policy := range []Policy{NonFair, FIFO} {
		var s Sync
		c := NewCond(&s, policy)
		stop, cancel := context.WithCancel(context.Background())
		require.True(t, s.LockOwned(context.Background(), Owned(o), policy))
		s.Holds = MaxHolds - 1
		waiter := run(func() bool { return c.WaitContext(stop, Owned(o)) })
		eventually(t, func() bool { return c.Len() == 1 && !s.Held() })
		require.True(t, s.LockOwned(context.Background(), Owned(o), policy))
		s.Holds = MaxHolds - 2
		cancel() // it comes back to a lock that its owner holds
		require.False(t, waiter.result(t))
		require.Equal(t, int64(2*MaxHolds-2), s.Holds)
		held, counted := s.Reenter(o)
		require.True(t, held)
		require.False(t, counted)
		require.True(t, s.Leave(o, policy))
		require.True(t, s.HeldBy(o))
	}
}

package syncq

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/pause"
)

// These tests hold the guard to stop others at the point where they need it, and so
// bring about the rare orders of events one at a time.

// hang is a limit that only a hang reaches.
const hang = time.Minute

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("did not happen\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

// blocked returns how many goroutines are blocked in what the runtime calls reason, with a call of
// function on their stacks.
func blocked(reason, function string) (n int) {
	buf := make([]byte, 1<<20)
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		header, frames, _ := strings.Cut(g, "\n")
		if strings.Contains(header, "["+reason) && strings.Contains(frames, function+"(") {
			n++
		}
	}
	return n
}

// atGuard waits until n goroutines that call function are blocked at a mutex.
func atGuard(t *testing.T, n int, function string) {
	t.Helper()
	eventually(t, func() bool { return blocked("sync.Mutex.Lock", function) == n })
}

type asyncCall struct{ done chan bool }

func run(f func() bool) asyncCall {
	c := asyncCall{make(chan bool, 1)}
	go func() { c.done <- f() }()
	return c
}

func (c asyncCall) result(t *testing.T) bool {
	t.Helper()
	select {
	case ok := <-c.done:
		return ok
	case <-time.After(hang):
		buf := make([]byte, 1<<20)
		t.Fatalf("stuck\n%s", buf[:runtime.Stack(buf, true)])
		return false
	}
}

// until returns a limit that ends when stop is closed.
func until(stop <-chan struct{}) *park.Limit {
	return park.Until(stopped{context.Background(), stop})
}

type stopped struct {
	context.Context
	done <-chan struct{}
}

func (s stopped) Done() <-chan struct{} { return s.done }

// waits has p wait for s until stop is closed, and returns when p is number at in the queue.
func queueAs(t *testing.T, s *Sync, p Party, policy Policy, at int, stop <-chan struct{}) asyncCall {
	t.Helper()
	var l *park.Limit
	if stop != nil {
		l = until(stop)
	}
	c := run(func() bool { return s.wait(newNode(p, false), policy, l) == Acquired })
	eventually(t, func() bool { return s.Len() == at })
	return c
}

// idle checks that s is free and in order.
func idle(t *testing.T, s *Sync) {
	t.Helper()
	require.NoError(t, s.Verify())
	require.Zero(t, s.Word.Load())
	require.Zero(t, s.Holds)
}

// patient has the first waiter be one that has not waited for long, however slow the machine
// is. The guard is held.
func patient(s *Sync) {
	s.queue.head.since, s.queue.head.reserved = clock()+time.Hour, false
	s.advance(NonFair, keep)
}

// enqueued returns a patient waiter of s that the test plays itself. Its permits are in the
// channel.
func enqueued(t *testing.T, s *Sync, p Party) (*node, <-chan struct{}) {
	t.Helper()
	n := newNode(p, false)
	permit := n.place.Open()
	require.True(t, s.join(n, NonFair))
	s.guard.Lock()
	n.since, n.reserved = clock()+time.Hour, false
	s.advance(NonFair, keep)
	s.guard.Unlock()
	return n, permit
}

// stepwise frees s, which is held exclusively and has waiters, as a NonFair release does before
// it has the guard. The guard is held. The release goes on when it gets the guard.
func stepwise(t *testing.T, s *Sync) asyncCall {
	t.Helper()
	patient(s)
	release := run(func() bool { return s.Unlock(NonFair) })
	eventually(t, func() bool { return s.Word.Load() == flagQueued|flagWoken })
	return release
}

func TestAWakeUpOfALeaverGoesToTheNext(t *testing.T) {
	for _, leaver := range []string{"asleep", "awake"} {
		t.Run(leaver, func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Owned(1)))
			n, permit := enqueued(t, &s, Owned(2))
			second := queueAs(t, &s, Owned(3), NonFair, 2, nil)

			s.guard.Lock()
			release := stepwise(t, &s)
			if leaver == "awake" {
				s.guard.Unlock()
				require.True(t, release.result(t))
				<-permit
				s.guard.Lock()
				require.Equal(t, awake, n.state)
			}
			wake := s.cancel(n, NonFair)
			s.guard.Unlock()
			if leaver == "asleep" {
				require.True(t, release.result(t))
			}
			require.NotNil(t, wake, "the lock is free, and the second waiter is the first now")
			unpark(wake)
			require.True(t, second.result(t))
			n.recycle()
			require.True(t, s.Unlock(NonFair))
			idle(t, &s)
		})
	}
}

func TestABargerDuringAReleaseTakesOverTheDuty(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	waiter := queueAs(t, &s, Owned(2), NonFair, 1, nil)

	s.guard.Lock()
	release := stepwise(t, &s)
	require.True(t, s.TryLock(Owned(3)))
	require.True(t, s.Unlock(NonFair), "does not wait for the guard, since the wake-up is under way")
	require.True(t, s.TryLock(Owned(3)))
	s.guard.Unlock()

	require.True(t, release.result(t))
	require.Equal(t, Value(3)|flagQueued, s.Word.Load(), "the waiter sleeps on, and 3 has to wake it")
	require.True(t, s.Unlock(NonFair))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

// A holder that releases while the first waiter is awake leaves the wake-up to it. So the
// waiter may not sleep again on a word that says it is awake: the next release would leave it
// asleep.
func TestAReleaseBesideAnAwakeWaiterLosesNoWakeUp(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	n, permit := enqueued(t, &s, Owned(2))
	for range maxLost / 2 {
		require.True(t, s.Unlock(NonFair))
		<-permit
		require.Equal(t, flagQueued|flagWoken, s.Word.Load())
		require.True(t, s.TryLock(Owned(3)))
		require.True(t, s.Unlock(NonFair), "it need not wake the waiter once more")
		require.Empty(t, permit)
		require.True(t, s.TryLock(Owned(1)))
		require.False(t, s.compete(n))
		require.Equal(t, Value(1)|flagQueued, s.Word.Load(), "the next release has to wake it")
		require.NoError(t, s.Verify())
	}
	require.True(t, s.Unlock(NonFair))
	<-permit
	require.True(t, s.compete(n))
	require.Zero(t, s.Len(), "it has left the queue with the step that took the lock")
	require.NoError(t, s.Verify())
	n.recycle()
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

// The barger frees and takes the lock between the waiter's look at the word and its swap.
func TestAWaiterWhoseSwapFailsGoesOnToRace(t *testing.T) {
	s := New(NonFair)
	var stop atomic.Bool
	inside := 0 // guarded by s
	barger := run(func() bool {
		for !stop.Load() {
			if s.TryLock(Owned(1)) {
				inside++
				pause.Pause(1) // or the waiter nearly always finds the lock free
				s.Unlock(NonFair)
			}
		}
		return true
	})
	for races := 0; races < 80; {
		n := newNode(Owned(2), false)
		for queued := s.join(n, NonFair); queued; races++ {
			n.place.Park()
			queued = !s.compete(n)
		}
		inside++
		if n.recycle(); !s.Release(2, NonFair) {
			stop.Store(true)
			require.Fail(t, "the waiter returned without the lock")
		}
	}
	stop.Store(true)
	barger.result(t)
	idle(t, &s)
}

// A reader overtook the writer while that was awake. So the next step that looks reserves the lock.
func TestNoReaderPassesAnAwakeWriterThatIsOwedTheLock(t *testing.T) {
	s := New(NonFair)
	require.True(t, s.TryLock(Owned(1)))
	writer, permit := enqueued(t, &s, Owned(2))
	require.True(t, s.Unlock(NonFair))
	<-permit
	require.True(t, s.TryLockSharedInTurn())
	require.True(t, s.guarded(NonFair, keep))
	require.True(t, writer.state == awake && writer.reserved)

	third := newNode(Anonymous(3), true)
	require.True(t, s.join(third, NonFair), "it waits behind the writer")
	require.False(t, s.compete(writer))
	require.NoError(t, s.Verify())
	require.True(t, s.UnlockShared(NonFair))
	<-permit
	require.True(t, s.compete(writer))
	require.EqualValues(t, 2, s.Owner())
	writer.recycle()
	require.True(t, s.Unlock(NonFair))
	third.place.Park()
	third.recycle()
	require.True(t, s.UnlockShared(NonFair))
	idle(t, &s)
}

func TestAWaiterThatLostTooOftenIsHandedTheLock(t *testing.T) {
	var s Sync
	barger := Owned(1)
	require.True(t, s.TryLock(barger))
	n, permit := enqueued(t, &s, Owned(2))
	for lost := 1; s.Word.Load()&flagReserved == 0; lost++ {
		require.True(t, s.Unlock(NonFair))
		<-permit
		require.True(t, s.TryLock(barger))
		require.False(t, s.compete(n))
		require.Equal(t, lost >= maxLost, s.Word.Load()&flagReserved != 0)
		require.NoError(t, s.Verify())
	}
	require.True(t, s.Unlock(NonFair))
	require.False(t, s.TryLock(barger), "handed over, never free")
	<-permit
	require.EqualValues(t, 2, s.Owner())
	n.recycle()
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

func TestATimeOutBesideAGrantIsDecidedOnce(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		for range 200 {
			var s Sync
			stop := make(chan struct{})
			require.True(t, s.TryLock(Owned(1)))
			waiter := queueAs(t, &s, Owned(2), policy, 1, stop)
			s.guard.Lock()
			release := run(func() bool { return s.Unlock(policy) })
			close(stop)
			s.guard.Unlock()
			require.True(t, release.result(t))
			if waiter.result(t) {
				require.EqualValues(t, 2, s.Owner())
				require.True(t, s.Unlock(policy))
			}
			idle(t, &s)
		}
	}
}

func TestAFIFOLockWithWaitersIsNeverFree(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	waiter := queueAs(t, &s, Owned(2), FIFO, 1, nil)
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
		require.True(t, s.Release(o, FIFO))
		require.True(t, s.Release(o, FIFO))
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

func TestAWaiterThatWaitedTooLongLosesOnlyOneRace(t *testing.T) {
	for _, waited := range []time.Duration{maxBarging / 2, maxBarging} {
		synctest.Test(t, func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Owned(1)))
			n := newNode(Owned(2), false)
			permit := n.place.Open()
			require.True(t, s.join(n, NonFair))
			time.Sleep(waited)
			require.True(t, s.Unlock(NonFair))
			<-permit
			require.True(t, s.TryLock(Owned(3)))
			require.False(t, s.compete(n))
			require.Equal(t, waited >= maxBarging, s.Word.Load()&flagReserved != 0, "after %v", waited)
			require.NoError(t, s.Verify())
			require.True(t, s.Unlock(NonFair))
			<-permit
			require.True(t, s.compete(n))
			n.recycle()
			require.EqualValues(t, 2, s.Owner())
			require.True(t, s.Unlock(NonFair))
			idle(t, &s)
		})
	}
}

func TestAWaiterThatBecomesTheFirstTooLateIsOwedTheLock(t *testing.T) {
	for _, waited := range []time.Duration{maxBarging / 2, maxBarging} {
		synctest.Test(t, func(t *testing.T) {
			s := New(NonFair)
			require.True(t, s.TryLock(Owned(1)))
			first, second := newNode(Owned(2), false), newNode(Owned(3), false)
			require.True(t, s.join(first, NonFair))
			require.True(t, s.join(second, NonFair))
			time.Sleep(waited)
			s.guard.Lock()
			require.Nil(t, s.cancel(first, NonFair))
			s.guard.Unlock()
			require.Equal(t, waited >= maxBarging, s.Word.Load()&flagReserved != 0, "after %v", waited)
			require.NoError(t, s.Verify())
			require.True(t, s.Unlock(NonFair))
			second.place.Park()
			require.True(t, s.compete(second))
			first.recycle()
			second.recycle()
			require.True(t, s.Unlock(NonFair))
			idle(t, &s)
		})
	}
}

func TestABroadcastHandsTheLockFromOneToTheNext(t *testing.T) {
	var s Sync
	c := NewCond(&s, NonFair)
	var waiters []asyncCall
	for i := range 3 {
		waiters = append(waiters, run(func() bool {
			p := Owned(int64(i + 2))
			s.Lock(p, NonFair)
			c.Wait(p, nil)
			return true
		}))
		eventually(t, func() bool { return c.Len() == i+1 && !s.Held() })
	}
	barger := Owned(1)
	require.True(t, s.TryLock(barger))
	require.Equal(t, 3, c.Broadcast())
	for i, w := range waiters {
		require.NoError(t, s.Verify())
		require.True(t, s.Unlock(NonFair))
		require.EqualValues(t, i+2, s.Owner(), "before it has run")
		require.False(t, s.TryLock(barger))
		require.True(t, w.result(t))
	}
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

func TestASignalledFirstWaiterIsOverdueOneMillisecondAfterItsFirstLoss(t *testing.T) {
	var s Sync
	c := NewCond(&s, NonFair)
	waiter, barger := Owned(2), Owned(1)
	require.True(t, s.TryLock(waiter))
	n := newNode(waiter, false)
	c.enqueue(n, drop).Unlock()
	loses := func() {
		require.True(t, s.Unlock(NonFair))
		require.True(t, s.TryLock(barger))
		n.place.Park()
		require.False(t, s.compete(n))
	}
	require.True(t, s.TryLock(barger))
	require.True(t, c.Signal())
	loses()
	require.False(t, n.reserved)
	n.since -= maxBarging
	loses()
	require.True(t, n.reserved)
	require.True(t, s.Unlock(NonFair))
	require.True(t, s.HeldBy(2))
	n.place.Park()
	require.True(t, s.compete(n))
	n.recycle()
	require.True(t, s.Release(2, NonFair))
	idle(t, &s)
}

func TestASignalledWaiterRacesForTheLock(t *testing.T) {
	var s Sync
	c := NewCond(&s, NonFair)
	waiter := run(func() bool {
		s.Lock(Owned(2), NonFair)
		c.Wait(Owned(2), nil)
		return true
	})
	eventually(t, func() bool { return c.Len() == 1 && !s.Held() })
	require.True(t, s.TryLock(Owned(1)))
	require.Equal(t, 1, c.Broadcast(), "of one is a signal")
	s.guard.Lock()
	release := stepwise(t, &s) // free for anybody
	s.guard.Unlock()
	require.True(t, release.result(t))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

func TestTheSecondOfTwoUnlocksFindsTheLockFree(t *testing.T) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
		t.Run(name, func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Anonymous(1)))
			s.guard.Lock()
			s.Word.Or(flagQueued | flagReserved) // as with a waiter, so that both go to the guard
			first := run(func() bool { return s.Unlock(policy) })
			second := run(func() bool { return s.Unlock(policy) })
			atGuard(t, 2, "syncq.(*Sync).guarded")
			s.Word.Store(Taken) // the waiter has given up
			s.guard.Unlock()
			require.NotEqual(t, first.result(t), second.result(t))
			idle(t, &s)
		})
	}
}

// The waiter gives up after the slow unlock has seen it, and a fast unlock comes before the
// slow one has the guard.
func TestAFastUnlockDuringASlowOneLeavesItNothing(t *testing.T) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
		t.Run(name, func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Anonymous(1)))
			n := newNode(Anonymous(2), false)
			n.reserved = policy == NonFair
			require.True(t, s.join(n, policy))
			s.guard.Lock()
			slow := run(func() bool { return s.Unlock(policy) })
			atGuard(t, 1, "syncq.(*Sync).guarded")
			require.Nil(t, s.cancel(n, policy))
			require.Equal(t, Taken, s.Word.Load())
			require.True(t, s.Unlock(policy), "nobody waits, so that it is fast")
			s.guard.Unlock()
			require.False(t, slow.result(t), "there was one hold")
			n.recycle()
			idle(t, &s)
		})
	}
}

// A slow unlock that finds another hold than the one that it saw ends that hold, as for a lock
// without owners they are the same.
func TestAnUnlockEndsTheHoldFoundWithTheGuard(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Anonymous(1)))
	n := newNode(Anonymous(2), false)
	require.True(t, s.join(n, FIFO))
	s.guard.Lock()
	slow := run(func() bool { return s.Unlock(FIFO) })
	atGuard(t, 1, "syncq.(*Sync).guarded")
	s.cancel(n, FIFO)
	require.True(t, s.Unlock(FIFO))
	require.True(t, s.TryLock(Anonymous(3)))
	s.guard.Unlock()
	require.True(t, slow.result(t))
	require.False(t, s.Unlock(FIFO))
	n.recycle()
	idle(t, &s)
}

func TestALeaverAwaitsTheUnparkOnItsWay(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Anonymous(1)))
	stop := make(chan struct{})
	waiter := queueAs(t, &s, Anonymous(2), NonFair, 1, stop)
	s.guard.Lock()
	patient(&s)
	require.True(t, s.Word.CompareAndSwap(Taken|flagQueued, flagQueued|flagWoken))
	n, _ := s.advance(NonFair, keep) // by a release that has yet to unpark
	s.guard.Unlock()
	require.NotNil(t, n)
	close(stop)
	eventually(t, func() bool {
		return len(waiter.done) > 0 || blocked("chan receive", "park.(*Place).Park") == 1
	})
	require.Empty(t, waiter.done, "its node could be another's by the time of the unpark")
	require.Zero(t, s.Len())
	unpark(n)
	require.False(t, waiter.result(t))
	idle(t, &s)
}

// The waiter has been woken, but not run, when another goroutine of its owner barges in.
func TestADismissedAwakeWaiterIsUnparkedOnce(t *testing.T) {
	const o = -5
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	n, permit := enqueued(t, &s, Owned(o))
	require.True(t, s.Unlock(NonFair))
	require.Equal(t, flagQueued|flagWoken, s.Word.Load())
	<-permit // the waiter runs, and is about to race
	require.True(t, s.TryLock(Owned(o)))
	require.True(t, s.dismiss(n, NonFair))
	require.False(t, s.dismiss(n, NonFair))
	require.Zero(t, s.Len())
	require.True(t, s.compete(n))
	require.Empty(t, permit, "a second permit would be left for the next one that uses the node")
	n.recycle()
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

// enters returns a waiter for a lock behind c's.
func enters(c *Cond, l *park.Limit, who int64) Waiter {
	w := c.NewWaiter(Anonymous(who), l)
	w.Enqueue(false)
	return w
}

func TestAnAbandonedWaitAwaitsTheUnparkOnItsWay(t *testing.T) {
	var s Sync
	c := NewCond(&s, FIFO)
	w := enters(c, nil, 1)
	s.guard.Lock() // a signal that has yet to unpark
	c.queue.remove(w.n)
	n := s.push(w.n, FIFO)
	s.guard.Unlock()
	require.Same(t, w.n, n)
	leaver := run(func() bool { w.Abandon(); return true })
	eventually(t, func() bool {
		return len(leaver.done) > 0 || blocked("sync.Cond.Wait", "syncq.Waiter.Abandon") == 1
	})
	require.Empty(t, leaver.done)
	unpark(n)
	require.True(t, leaver.result(t))
	idle(t, &s)
}

func TestAnAbandonedWaitPassesItsSignalOn(t *testing.T) {
	var s Sync
	c := NewCond(&s, FIFO)
	leaver := enters(c, nil, 1)
	stays := run(func() bool { return enters(c, nil, 2).Await() })
	eventually(t, func() bool { return c.Len() == 2 })
	require.True(t, c.Signal())
	leaver.Abandon()
	require.True(t, stays.result(t))
	require.True(t, s.Unlock(FIFO))
	idle(t, &s)
}

// A waiter that kept the link would keep the nodes of its whole group alive.
func TestAnUnparkedWaiterLinksToNoOther(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.TryLock(Owned(1)))
		var group []*node
		for range 5 {
			n := newNode(Party{who: 2}, true)
			n.place.Open()
			require.True(t, s.join(n, policy))
			group = append(group, n)
		}
		s.guard.Lock()
		wake, ok := s.advance(policy, drop)
		s.guard.Unlock()
		require.True(t, ok)
		for _, n := range group[:4] {
			require.NotNil(t, n.wake, "they are a chain")
		}
		unpark(wake)
		for _, n := range group {
			require.Nil(t, n.wake)
			n.recycle()
			require.Nil(t, n.next)
			require.Nil(t, n.prev)
			require.True(t, s.Unlock(policy))
		}
	})
}

func TestACanceledWriterAtTheHeadLetsReadersJoinReaders(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.LockShared(Owned(9), policy))
		stop := make(chan struct{})
		writer := queueAs(t, s, Owned(1), policy, 1, stop)
		var readers []asyncCall
		for i := range 3 {
			readers = append(readers, run(func() bool { return s.LockShared(Owned(int64(i+2)), policy) }))
			eventually(t, func() bool { return s.Len() == i+2 })
		}
		last := queueAs(t, s, Owned(8), policy, 5, nil)
		close(stop)
		require.False(t, writer.result(t))
		for _, r := range readers {
			require.True(t, r.result(t))
		}
		require.Equal(t, 4, s.Shared())
		require.Equal(t, []int64{8}, s.Waiters())
		require.NoError(t, s.Verify())
		for range 4 {
			require.True(t, s.Unlock(policy))
		}
		require.True(t, last.result(t))
		require.True(t, s.Unlock(policy))
	})
}

func TestACanceledWaiterInTheMiddleLetsNobodyPast(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.LockShared(Owned(9), policy))
		first := queueAs(t, s, Owned(1), policy, 1, nil)
		stop := make(chan struct{})
		middle := queueAs(t, s, Owned(2), policy, 2, stop)
		late := run(func() bool { return s.LockShared(Owned(3), policy) })
		eventually(t, func() bool { return s.Len() == 3 })
		close(stop)
		require.False(t, middle.result(t))
		require.Equal(t, []int64{1, 3}, s.Waiters())
		require.Equal(t, 1, s.Shared())
		require.NoError(t, s.Verify())
		require.True(t, s.Unlock(policy))
		require.True(t, first.result(t))
		require.True(t, s.Unlock(policy))
		require.True(t, late.result(t))
		require.True(t, s.Unlock(policy))
	})
}

func TestTheFlagsMirrorTheHeadOfTheQueue(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	fresh, old, third := newNode(Owned(2), false), newNode(Owned(3), false), newNode(Party{who: 4}, true)
	for _, n := range []*node{fresh, old, third} {
		n.place.Open()
		require.True(t, s.join(n, NonFair))
	}
	s.guard.Lock()
	patient(&s)
	old.since = due
	s.guard.Unlock()
	require.Equal(t, Value(1)|flagQueued, s.Word.Load(), "the first waiter is asleep, and has not waited for long")
	require.True(t, s.Unlock(NonFair))
	require.Equal(t, flagQueued|flagWoken, s.Word.Load(), "the first waiter is awake")
	fresh.place.Park()
	require.True(t, s.compete(fresh))
	require.Equal(t, Value(2)|flagQueued|flagReserved, s.Word.Load(), "the lock is reserved for the next waiter")
	require.True(t, s.Unlock(NonFair))
	require.Equal(t, Value(3)|flagQueued|flagReserved, s.Word.Load(), "and for a third as well")
	require.True(t, s.Unlock(NonFair))
	require.Equal(t, oneHold|flagShared, s.Word.Load(), "nobody waits")
	for _, n := range []*node{old, third} {
		n.place.Park()
	}
	for _, n := range []*node{fresh, old, third} {
		n.recycle()
	}
	require.True(t, s.Unlock(NonFair))
	idle(t, &s)
}

func TestManyInspectorsSeeEveryWaiterThatStays(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	const n = 20 * part
	var stay, leave []*node
	var want []int64
	for i := range n {
		w := newNode(Owned(int64(i+2)), false)
		s.guard.Lock()
		_, queued := s.tryEnqueue(w, FIFO)
		s.guard.Unlock()
		require.True(t, queued)
		if i%part < 3 || i%7 == 0 { // those at which inspections stop, too
			leave = append(leave, w)
		} else {
			stay = append(stay, w)
			want = append(want, w.who)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got := s.Waiters()
			k := 0
			for i, who := range got {
				if i > 0 && who <= got[i-1] {
					t.Errorf("%d is shown after %d", who, got[i-1])
				}
				if k < len(want) && who == want[k] {
					k++
				}
			}
			if k < len(want) {
				t.Errorf("%d, which stays, is missing", want[k])
			}
		})
	}
	for _, w := range leave {
		s.guard.Lock()
		s.cancel(w, FIFO)
		s.guard.Unlock()
		w.recycle()
		runtime.Gosched()
	}
	wg.Wait()
	require.NoError(t, s.Verify())
	for range stay {
		require.True(t, s.Unlock(FIFO))
	}
	require.True(t, s.Unlock(FIFO))
	idle(t, &s)
	for _, w := range stay {
		w.place.Park()
		w.recycle()
	}
}

// The inspectors stop at one node, which leaves; then its follower leaves, to which they went on.
func TestInspectorsAtOneWaiterGoOnWhenItLeaves(t *testing.T) {
	var s Sync
	var l list
	var ns []*node
	for i := range 4 {
		ns = append(ns, &node{who: int64(i)})
		l.push(ns[i])
	}
	var walks [5]walk
	for i := range walks {
		walks[i].stand(ns[1+i%2])
	}
	l.remove(ns[1])
	require.Same(t, ns[2], walks[0].at)
	require.Same(t, ns[2], walks[3].resume(), "the third one of five")
	l.remove(ns[2])
	require.Nil(t, ns[1].visit)
	require.Nil(t, ns[2].visit)
	for _, i := range []int{4, 0, 2, 1} {
		require.Same(t, ns[3], walks[i].resume())
	}
	require.Nil(t, ns[3].visit)
	walks[0].stand(ns[3])
	l.remove(ns[3])
	require.Nil(t, walks[0].resume(), "there is nobody behind it")
	require.Equal(t, []int64{0}, s.owners(&l))
}

func TestAnInspectionOfAHundredThousandGivesTheGuardBack(t *testing.T) {
	const n = 100_000
	var s Sync
	s.Word.Store(Value(1) | flagQueued)
	ns := make([]node, n)
	for i := range ns {
		ns[i].who = int64(i + 2)
		s.queue.push(&ns[i])
	}
	seen, between := 0, 0
	var other asyncCall
	s.each(&s.queue, func(*node) {
		if seen == 0 {
			other = run(func() bool {
				s.guard.Lock()
				defer s.guard.Unlock()
				between = seen
				return true
			})
		}
		if seen++; seen%part == 0 && between == 0 {
			atGuard(t, 1, "sync.(*Mutex).Lock")
			time.Sleep(2 * time.Millisecond) // after 1 ms a sync.Mutex passes to a waiter that was woken in vain
		}
	})
	require.True(t, other.result(t))
	require.Equal(t, n, seen)
	require.Positive(t, between)
	require.Less(t, between, n)
	who := s.Waiters()
	require.Len(t, who, n)
	for i, w := range who {
		require.EqualValues(t, i+2, w)
	}
}

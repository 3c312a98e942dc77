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
	"github.com/jucgo/locks/internal/test/testbed"
)

// These tests hold the guard to stop other goroutines where they need the guard. So they bring
// about the rare orders of events one at a time.

// hang is a limit that only a hang reaches.
const hang = time.Minute

// blocked returns how many goroutines are blocked with a call of function on their stacks. The
// runtime gives reason as their state.
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
	testbed.Await(t, func() bool { return blocked("sync.Mutex.Lock", function) == n })
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

// queueAs starts a wait of p for s, which ends when stop is closed. It returns when p is number at
// in the queue.
func queueAs(t *testing.T, s *ReadWrite, p Party, at int, stop <-chan struct{}) asyncCall {
	t.Helper()
	var l *park.Limit
	if stop != nil {
		l = until(stop)
	}
	c := run(func() bool { return s.newNode(p, false).wait(l) == Acquired })
	testbed.Await(t, func() bool { return s.Len() == at })
	return c
}

// idle checks that s is free and in order.
func idle(t *testing.T, s *ReadWrite) {
	t.Helper()
	require.NoError(t, s.Verify())
	require.Zero(t, s.Word.Load())
	require.Zero(t, s.Holds)
}

// patient makes the first waiter count as new, so that it is not overdue on a slow machine. The
// guard is held.
func patient(s *ReadWrite) {
	s.queue.head.since, s.queue.head.reserved = clock()+time.Hour, false
	s.advance(keep)
}

// enqueued returns a patient waiter of s that the test plays itself. Its permits are in the
// channel.
func enqueued(t *testing.T, s *ReadWrite, p Party) (*node, <-chan struct{}) {
	t.Helper()
	n := s.newNode(p, false)
	permit := n.place.Open()
	require.True(t, s.join(n))
	s.guard.Lock()
	n.since, n.reserved = clock()+time.Hour, false
	s.advance(keep)
	s.guard.Unlock()
	return n, permit
}

// stepwise frees s, which is held exclusively and has waiters, as a NonFair release does before
// it has the guard. The guard is held. The release goes on when it gets the guard.
func stepwise(t *testing.T, s *ReadWrite) asyncCall {
	t.Helper()
	patient(s)
	release := run(func() bool { return s.Unlock() })
	testbed.Await(t, func() bool { return s.Word.Load() == flagQueued|flagWoken })
	return release
}

func TestWakeUpOfALeaverGoesToNext(t *testing.T) {
	for _, leaver := range []string{"asleep", "awake"} {
		t.Run(leaver, func(t *testing.T) {
			var s ReadWrite
			require.True(t, s.TryLock(Owned(1)))
			n, permit := enqueued(t, &s, Owned(2))
			second := queueAs(t, &s, Owned(3), 2, nil)

			s.guard.Lock()
			release := stepwise(t, &s)
			if leaver == "awake" {
				s.guard.Unlock()
				require.True(t, release.result(t))
				<-permit
				s.guard.Lock()
				require.Equal(t, awake, n.state)
			}
			wake := n.cancel()
			s.guard.Unlock()
			if leaver == "asleep" {
				require.True(t, release.result(t))
			}
			require.NotNil(t, wake, "the lock is free, and the second waiter is the first now")
			unpark(wake)
			require.True(t, second.result(t))
			n.recycle()
			require.True(t, s.Unlock())
			idle(t, &s)
		})
	}
}

func TestBargerDuringAReleaseTakesOverTheDuty(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	waiter := queueAs(t, &s, Owned(2), 1, nil)

	s.guard.Lock()
	release := stepwise(t, &s)
	require.True(t, s.TryLock(Owned(3)))
	require.True(t, s.Unlock(), "does not wait for the guard, since the wake-up is under way")
	require.True(t, s.TryLock(Owned(3)))
	s.guard.Unlock()

	require.True(t, release.result(t))
	require.Equal(t, Value(3)|flagQueued, s.Word.Load(), "the waiter sleeps on, and 3 has to wake it")
	require.True(t, s.Unlock())
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock())
	idle(t, &s)
}

// A holder that releases while the first waiter is awake leaves the wake-up to it. So the
// waiter may not sleep again on a word that says it is awake: the next release would leave it
// asleep.
func TestReleaseDuringARaceLosesNoWakeUp(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	n, permit := enqueued(t, &s, Owned(2))
	for range MaxLost / 2 {
		require.True(t, s.Unlock())
		<-permit
		require.Equal(t, flagQueued|flagWoken, s.Word.Load())
		require.True(t, s.TryLock(Owned(3)))
		require.True(t, s.Unlock(), "it need not wake the waiter once more")
		require.Empty(t, permit)
		require.True(t, s.TryLock(Owned(1)))
		require.False(t, n.compete())
		require.Equal(t, Value(1)|flagQueued, s.Word.Load(), "the next release has to wake it")
		require.NoError(t, s.Verify())
	}
	require.True(t, s.Unlock())
	<-permit
	require.True(t, n.compete())
	require.Zero(t, s.Len(), "it has left the queue with the step that took the lock")
	require.NoError(t, s.Verify())
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, &s)
}

// The barger frees and takes the lock between the waiter's look at the word and its swap.
func TestWaiterWhoseSwapFailsGoesOnToRace(t *testing.T) {
	s := NewReadWrite(NonFair)
	var stop atomic.Bool
	inside := 0 // guarded by s
	barger := run(func() bool {
		for !stop.Load() {
			if s.TryLock(Owned(1)) {
				inside++
				pause.Pause(1) // or the waiter nearly always finds the lock free
				s.Unlock()
			}
		}
		return true
	})
	for races := 0; races < 80; {
		n := s.newNode(Owned(2), false)
		for queued := s.join(n); queued; races++ {
			n.place.Park()
			queued = !n.compete()
		}
		inside++
		if n.recycle(); !s.Release(2) {
			stop.Store(true)
			require.Fail(t, "the waiter returned without the lock")
		}
	}
	stop.Store(true)
	barger.result(t)
	idle(t, &s)
}

// A reader overtook the writer while that was awake. So the next step that looks reserves the lock.
func TestNoReaderOvertakesAnAwakeReservedWriter(t *testing.T) {
	s := NewReadWrite(NonFair)
	require.True(t, s.TryLock(Owned(1)))
	writer, permit := enqueued(t, &s, Owned(2))
	require.True(t, s.Unlock())
	<-permit
	require.True(t, s.TryLockSharedInTurn())
	require.True(t, s.guarded(keep))
	require.True(t, writer.state == awake && writer.reserved)

	third := s.newNode(Anonymous(3), true)
	require.True(t, s.join(third), "it waits behind the writer")
	require.False(t, writer.compete())
	require.NoError(t, s.Verify())
	require.True(t, s.UnlockShared())
	<-permit
	require.True(t, writer.compete())
	require.EqualValues(t, 2, s.Owner())
	writer.recycle()
	require.True(t, s.Unlock())
	third.place.Park()
	third.recycle()
	require.True(t, s.UnlockShared())
	idle(t, &s)
}

func TestWaiterThatLostTooOftenIsHandedLock(t *testing.T) {
	var s ReadWrite
	barger := Owned(1)
	require.True(t, s.TryLock(barger))
	n, permit := enqueued(t, &s, Owned(2))
	for lost := 1; s.Word.Load()&flagReserved == 0; lost++ {
		require.True(t, s.Unlock())
		<-permit
		require.True(t, s.TryLock(barger))
		require.False(t, n.compete())
		require.Equal(t, lost >= MaxLost, s.Word.Load()&flagReserved != 0)
		require.NoError(t, s.Verify())
	}
	require.True(t, s.Unlock())
	require.False(t, s.TryLock(barger), "handed over, never free")
	<-permit
	require.EqualValues(t, 2, s.Owner())
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestTimeOutDuringAGrantIsDecidedOnce(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		for range 200 {
			s := NewReadWrite(policy)
			stop := make(chan struct{})
			require.True(t, s.TryLock(Owned(1)))
			waiter := queueAs(t, &s, Owned(2), 1, stop)
			s.guard.Lock()
			release := run(func() bool { return s.Unlock() })
			close(stop)
			s.guard.Unlock()
			require.True(t, release.result(t))
			if waiter.result(t) {
				require.EqualValues(t, 2, s.Owner())
				require.True(t, s.Unlock())
			}
			idle(t, &s)
		}
	}
}

func TestAFIFOLockWithWaitersIsNeverFree(t *testing.T) {
	s := NewReadWrite(FIFO)
	require.True(t, s.TryLock(Owned(1)))
	waiter := queueAs(t, &s, Owned(2), 1, nil)
	require.True(t, s.Unlock())
	require.EqualValues(t, 2, s.Owner(), "before the waiter has run")
	require.False(t, s.TryLock(Owned(1)))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock())
	require.False(t, s.Unlock(), "it is free")
}

func TestOwnersOfEitherSignFitTheWord(t *testing.T) {
	for _, o := range []int64{1, -1, 1 << 56, -(1 << 56), 1<<57 - 1, -(1 << 57)} {
		s := NewReadWrite(FIFO)
		require.True(t, s.TryLock(Owned(o)))
		require.Equal(t, o, s.Owner())
		require.True(t, s.HeldBy(o))
		require.False(t, s.HeldBy(o^1))
		require.True(t, s.LockOrReenter(o))
		require.True(t, s.Release(o))
		require.True(t, s.Release(o))
		require.Zero(t, s.Word.Load())
	}
}

func TestContendedLockAllocatesNothingInTheSteadyState(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		s := NewReadWrite(policy)
		stop := false // guarded by s
		other := run(func() bool {
			for {
				s.Lock(Owned(2))
				end := stop
				runtime.Gosched() // so that the other has to wait
				s.Unlock()
				if end {
					return true
				}
			}
		})
		allocs := testing.AllocsPerRun(500, func() {
			s.Lock(Owned(1))
			runtime.Gosched()
			s.Unlock()
		})
		s.Lock(Owned(1))
		stop = true
		s.Unlock()
		other.result(t)
		if !raceEnabled { // under which sync.Pool drops at random
			require.Zero(t, allocs, "FIFO=%v", policy)
		}
	}
}

func TestAnOverdueWaiterLosesOnlyOneRace(t *testing.T) {
	for _, waited := range []time.Duration{MaxBarging / 2, MaxBarging} {
		synctest.Test(t, func(t *testing.T) {
			var s ReadWrite
			require.True(t, s.TryLock(Owned(1)))
			n := s.newNode(Owned(2), false)
			permit := n.place.Open()
			require.True(t, s.join(n))
			time.Sleep(waited)
			require.True(t, s.Unlock())
			<-permit
			require.True(t, s.TryLock(Owned(3)))
			require.False(t, n.compete())
			require.Equal(t, waited >= MaxBarging, s.Word.Load()&flagReserved != 0, "after %v", waited)
			require.NoError(t, s.Verify())
			require.True(t, s.Unlock())
			<-permit
			require.True(t, n.compete())
			n.recycle()
			require.EqualValues(t, 2, s.Owner())
			require.True(t, s.Unlock())
			idle(t, &s)
		})
	}
}

func TestOverdueNewFirstWaiterHasTheLockReserved(t *testing.T) {
	for _, waited := range []time.Duration{MaxBarging / 2, MaxBarging} {
		synctest.Test(t, func(t *testing.T) {
			s := NewReadWrite(NonFair)
			require.True(t, s.TryLock(Owned(1)))
			first, second := s.newNode(Owned(2), false), s.newNode(Owned(3), false)
			require.True(t, s.join(first))
			require.True(t, s.join(second))
			time.Sleep(waited)
			s.guard.Lock()
			require.Nil(t, first.cancel())
			s.guard.Unlock()
			require.Equal(t, waited >= MaxBarging, s.Word.Load()&flagReserved != 0, "after %v", waited)
			require.NoError(t, s.Verify())
			require.True(t, s.Unlock())
			second.place.Park()
			require.True(t, second.compete())
			first.recycle()
			second.recycle()
			require.True(t, s.Unlock())
			idle(t, &s)
		})
	}
}

func TestBroadcastHandsTheLockFromOneToNext(t *testing.T) {
	var s ReadWrite
	c := NewCond(&s.Sync, NonFair)
	var waiters []asyncCall
	for i := range 3 {
		waiters = append(waiters, run(func() bool {
			p := Owned(int64(i + 2))
			s.Lock(p)
			c.Wait(p, nil)
			return true
		}))
		testbed.Await(t, func() bool { return c.Len() == i+1 && !s.Held() })
	}
	barger := Owned(1)
	require.True(t, s.TryLock(barger))
	require.Equal(t, 3, c.Broadcast())
	for i, w := range waiters {
		require.NoError(t, s.Verify())
		require.True(t, s.Unlock())
		require.EqualValues(t, i+2, s.Owner(), "before it has run")
		require.False(t, s.TryLock(barger))
		require.True(t, w.result(t))
	}
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestTheFirstLossStartsASignalledWaitersTime(t *testing.T) {
	var s ReadWrite
	c := NewCond(&s.Sync, NonFair)
	waiter, barger := Owned(2), Owned(1)
	require.True(t, s.TryLock(waiter))
	n := s.newNode(waiter, false)
	c.enqueue(n, drop).Unlock()
	loses := func() {
		require.True(t, s.Unlock())
		require.True(t, s.TryLock(barger))
		n.place.Park()
		require.False(t, n.compete())
	}
	require.True(t, s.TryLock(barger))
	require.True(t, c.Signal())
	loses()
	require.False(t, n.reserved)
	n.since -= MaxBarging
	loses()
	require.True(t, n.reserved)
	require.True(t, s.Unlock())
	require.True(t, s.HeldBy(2))
	n.place.Park()
	require.True(t, n.compete())
	n.recycle()
	require.True(t, s.Release(2))
	idle(t, &s)
}

func TestASignalledWaiterRacesForTheLock(t *testing.T) {
	var s ReadWrite
	c := NewCond(&s.Sync, NonFair)
	waiter := run(func() bool {
		s.Lock(Owned(2))
		c.Wait(Owned(2), nil)
		return true
	})
	testbed.Await(t, func() bool { return c.Len() == 1 && !s.Held() })
	require.True(t, s.TryLock(Owned(1)))
	require.Equal(t, 1, c.Broadcast(), "of one is a signal")
	s.guard.Lock()
	release := stepwise(t, &s) // free for any goroutine
	s.guard.Unlock()
	require.True(t, release.result(t))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestSecondOfTwoUnlocksFindsTheLockFree(t *testing.T) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
		t.Run(name, func(t *testing.T) {
			s := NewReadWrite(policy)
			require.True(t, s.TryLock(Anonymous(1)))
			s.guard.Lock()
			s.Word.Or(flagQueued | flagReserved) // as with a waiter, so that both go to the guard
			first := run(func() bool { return s.Unlock() })
			second := run(func() bool { return s.Unlock() })
			atGuard(t, 2, "syncq.(*Sync).Unlock")
			s.Word.Store(Taken) // the waiter has given up
			s.guard.Unlock()
			require.NotEqual(t, first.result(t), second.result(t))
			idle(t, &s)
		})
	}
}

// The waiter gives up after the slow unlock has seen it, and a fast unlock comes before the
// slow one has the guard.
func TestFastUnlockDuringSlowOneLeavesItNothing(t *testing.T) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
		t.Run(name, func(t *testing.T) {
			s := NewReadWrite(policy)
			require.True(t, s.TryLock(Anonymous(1)))
			n := s.newNode(Anonymous(2), false)
			n.reserved = policy == NonFair
			require.True(t, s.join(n))
			s.guard.Lock()
			slow := run(func() bool { return s.Unlock() })
			atGuard(t, 1, "syncq.(*Sync).Unlock")
			require.Nil(t, n.cancel())
			require.Equal(t, Taken, s.Word.Load())
			require.True(t, s.Unlock(), "nobody waits, so that it is fast")
			s.guard.Unlock()
			require.False(t, slow.result(t), "there was one hold")
			n.recycle()
			idle(t, &s)
		})
	}
}

// A slow unlock may find another hold than it saw before. It ends the hold that it finds: in a lock
// without owners the two are the same.
func TestUnlockEndsTheHoldFoundWithTheGuard(t *testing.T) {
	s := NewReadWrite(FIFO)
	require.True(t, s.TryLock(Anonymous(1)))
	n := s.newNode(Anonymous(2), false)
	require.True(t, s.join(n))
	s.guard.Lock()
	slow := run(func() bool { return s.Unlock() })
	atGuard(t, 1, "syncq.(*Sync).Unlock")
	n.cancel()
	require.True(t, s.Unlock())
	require.True(t, s.TryLock(Anonymous(3)))
	s.guard.Unlock()
	require.True(t, slow.result(t))
	require.False(t, s.Unlock())
	n.recycle()
	idle(t, &s)
}

func TestALeaverAwaitsTheUnparkOnItsWay(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Anonymous(1)))
	stop := make(chan struct{})
	waiter := queueAs(t, &s, Anonymous(2), 1, stop)
	s.guard.Lock()
	patient(&s)
	require.True(t, s.Word.CompareAndSwap(Taken|flagQueued, flagQueued|flagWoken))
	n, _ := s.advance(keep) // by a release that has yet to unpark
	s.guard.Unlock()
	require.NotNil(t, n)
	close(stop)
	testbed.Await(t, func() bool {
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
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	n, permit := enqueued(t, &s, Owned(o))
	require.True(t, s.Unlock())
	require.Equal(t, flagQueued|flagWoken, s.Word.Load())
	<-permit // the waiter runs, and is about to race
	require.True(t, s.TryLock(Owned(o)))
	require.True(t, n.dismiss())
	require.False(t, n.dismiss())
	require.Zero(t, s.Len())
	require.True(t, n.compete())
	require.Empty(t, permit, "a second permit would be left for the next one that uses the node")
	n.recycle()
	require.True(t, s.Unlock())
	idle(t, &s)
}

// enters returns a waiter for a lock behind c's.
func enters(c *Cond, l *park.Limit, who int64) Waiter {
	w := c.NewWaiter(Anonymous(who), l)
	w.Enqueue(false)
	return w
}

func TestAbandonedWaitAwaitsTheUnparkOnItsWay(t *testing.T) {
	s := NewReadWrite(FIFO)
	c := NewCond(&s.Sync, FIFO)
	w := enters(c, nil, 1)
	s.guard.Lock() // a signal that has yet to unpark
	c.queue.remove(w.n)
	n := w.n.push()
	s.guard.Unlock()
	require.Same(t, w.n, n)
	leaver := run(func() bool { w.Abandon(); return true })
	testbed.Await(t, func() bool {
		return len(leaver.done) > 0 || blocked("sync.Cond.Wait", "syncq.Waiter.Abandon") == 1
	})
	require.Empty(t, leaver.done)
	unpark(n)
	require.True(t, leaver.result(t))
	idle(t, &s)
}

func TestAnAbandonedWaitPassesItsSignalOn(t *testing.T) {
	s := NewReadWrite(FIFO)
	c := NewCond(&s.Sync, FIFO)
	leaver := enters(c, nil, 1)
	stays := run(func() bool { return enters(c, nil, 2).Await() })
	testbed.Await(t, func() bool { return c.Len() == 2 })
	require.True(t, c.Signal())
	leaver.Abandon()
	require.True(t, stays.result(t))
	require.True(t, s.Unlock())
	idle(t, &s)
}

// A waiter that kept the link would keep the nodes of its whole group alive.
func TestAnUnparkedWaiterLinksToNoOther(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.TryLock(Owned(1)))
		var group []*node
		for range 5 {
			n := s.newNode(Party{who: 2}, true)
			n.place.Open()
			require.True(t, s.join(n))
			group = append(group, n)
		}
		s.guard.Lock()
		wake, ok := s.advance(drop)
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
			require.True(t, s.Unlock())
		}
	})
}

func TestCanceledWriterAtHeadLetsReadersJoinReaders(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.LockShared(Owned(9)))
		stop := make(chan struct{})
		writer := queueAs(t, s, Owned(1), 1, stop)
		var readers []asyncCall
		for i := range 3 {
			readers = append(readers, run(func() bool { return s.LockShared(Owned(int64(i + 2))) }))
			testbed.Await(t, func() bool { return s.Len() == i+2 })
		}
		last := queueAs(t, s, Owned(8), 5, nil)
		close(stop)
		require.False(t, writer.result(t))
		for _, r := range readers {
			require.True(t, r.result(t))
		}
		require.Equal(t, 4, s.Shared())
		require.Equal(t, []int64{8}, s.Waiters())
		require.NoError(t, s.Verify())
		for range 4 {
			require.True(t, s.Unlock())
		}
		require.True(t, last.result(t))
		require.True(t, s.Unlock())
	})
}

func TestCanceledWaiterInTheMiddleLetsNobodyPast(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.LockShared(Owned(9)))
		first := queueAs(t, s, Owned(1), 1, nil)
		stop := make(chan struct{})
		middle := queueAs(t, s, Owned(2), 2, stop)
		late := run(func() bool { return s.LockShared(Owned(3)) })
		testbed.Await(t, func() bool { return s.Len() == 3 })
		close(stop)
		require.False(t, middle.result(t))
		require.Equal(t, []int64{1, 3}, s.Waiters())
		require.Equal(t, 1, s.Shared())
		require.NoError(t, s.Verify())
		require.True(t, s.Unlock())
		require.True(t, first.result(t))
		require.True(t, s.Unlock())
		require.True(t, late.result(t))
		require.True(t, s.Unlock())
	})
}

func TestTheFlagsMirrorTheHeadOfTheQueue(t *testing.T) {
	var s ReadWrite
	require.True(t, s.TryLock(Owned(1)))
	fresh, old, third := s.newNode(Owned(2), false), s.newNode(Owned(3), false), s.newNode(Party{who: 4}, true)
	for _, n := range []*node{fresh, old, third} {
		n.place.Open()
		require.True(t, s.join(n))
	}
	s.guard.Lock()
	patient(&s)
	old.since = due
	s.guard.Unlock()
	require.Equal(t, Value(1)|flagQueued, s.Word.Load(), "the first waiter is asleep, and has not waited for long")
	require.True(t, s.Unlock())
	require.Equal(t, flagQueued|flagWoken, s.Word.Load(), "the first waiter is awake")
	fresh.place.Park()
	require.True(t, fresh.compete())
	require.Equal(t, Value(2)|flagQueued|flagReserved, s.Word.Load(), "the lock is reserved for the next waiter")
	require.True(t, s.Unlock())
	require.Equal(t, Value(3)|flagQueued|flagReserved, s.Word.Load(), "and for a third as well")
	require.True(t, s.Unlock())
	require.Equal(t, oneHold|flagShared, s.Word.Load(), "nobody waits")
	for _, n := range []*node{old, third} {
		n.place.Park()
	}
	for _, n := range []*node{fresh, old, third} {
		n.recycle()
	}
	require.True(t, s.Unlock())
	idle(t, &s)
}

func TestManyInspectorsSeeEveryWaiterThatStays(t *testing.T) {
	s := NewReadWrite(FIFO)
	require.True(t, s.TryLock(Owned(1)))
	const n = 20 * part
	var stay, leave []*node
	var want []int64
	for i := range n {
		w := s.newNode(Owned(int64(i+2)), false)
		s.guard.Lock()
		_, queued := w.tryEnqueue()
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
		w.cancel()
		s.guard.Unlock()
		w.recycle()
		runtime.Gosched()
	}
	wg.Wait()
	require.NoError(t, s.Verify())
	for range stay {
		require.True(t, s.Unlock())
	}
	require.True(t, s.Unlock())
	idle(t, &s)
	for _, w := range stay {
		w.place.Park()
		w.recycle()
	}
}

// The inspectors stop at one node, which leaves; then its follower leaves, to which they went on.
func TestInspectorsGoOnWhenTheirWaiterLeaves(t *testing.T) {
	var s ReadWrite
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
	require.Equal(t, []int64{0}, l.owners(&s.guard))
}

func TestInspectionOfAHundredThousandGivesGuardBack(t *testing.T) {
	const n = 100_000
	var s ReadWrite
	s.Word.Store(Value(1) | flagQueued)
	ns := make([]node, n)
	for i := range ns {
		ns[i].who = int64(i + 2)
		s.queue.push(&ns[i])
	}
	seen, between := 0, 0
	var other asyncCall
	s.queue.each(&s.guard, func(*node) {
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
			time.Sleep(2 * time.Millisecond) // after 1 ms a sync.Mutex is handed to a waiter that was woken in vain
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

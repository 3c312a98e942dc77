package syncq

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/pause"
)

// take lets n periods of hand-overs pass that take each on an average.
func (p *pace) take(n int, each time.Duration, procs int) {
	for range n {
		p.measure(p.since+period*each, procs)
	}
}

const procs = 2

// How many periods a try takes.
const (
	plainTry = settling + counted
	aheadTry = settlingAhead + counted
)

// tried returns a pace that has tried both, with what they took.
func tried(plain, ahead time.Duration) *pace {
	p := &pace{since: time.Hour}
	p.take(plainTry, plain, procs)
	p.take(aheadTry, ahead, procs)
	return p
}

func TestALockStaysWithWhatWasFasterWhenItTriedBoth(t *testing.T) {
	p := tried(900, 600)
	require.Equal(t, decided, p.phase)
	require.True(t, p.ahead)
	require.False(t, tried(900, 800).ahead, "so little is chance")
	require.False(t, tried(900, 1200).ahead)

	p.take(termAhead-1, 600, procs)
	require.True(t, p.ahead)
	p.take(1, 600, procs)
	require.Equal(t, tryPlain, p.phase, "once more")
	require.False(t, p.ahead)
}

func TestADecisionThatDoesNotPayAnyMoreIsLookedAtAgain(t *testing.T) {
	p := tried(900, 600)
	p.take(tooManyInARow-1, 910, procs)
	p.take(1, 890, procs)
	p.take(tooManyInARow-1, 910, procs)
	require.True(t, p.ahead)
	p.take(1, 910, procs)
	require.Equal(t, tryPlain, p.phase)
	require.False(t, p.ahead)
}

func TestATryCountsWithoutItsBeginning(t *testing.T) {
	p := &pace{since: time.Hour}
	p.take(plainTry, 900, procs)
	require.True(t, p.ahead)
	p.take(settlingAhead, 4000, procs)
	p.take(counted, 600, procs)
	require.True(t, p.ahead)
	require.Equal(t, decided, p.phase)
}

func TestALockThatDoesNothingButChangeHandsTriesNothing(t *testing.T) {
	p := &pace{since: time.Hour}
	p.take(plainTry, 200, procs)
	require.Equal(t, decided, p.phase)
	require.False(t, p.ahead)
}

func TestWithOneProcessorNobodyWakesUpEarly(t *testing.T) {
	p := &pace{since: time.Hour}
	p.take(plainTry, 900, 1)
	require.Equal(t, decided, p.phase)
	require.False(t, p.ahead)
}

func TestAProcessorThatIsNotThereDoesNotCount(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 7))
	require.Equal(t, runtime.NumCPU(), processors())
	runtime.GOMAXPROCS(1)
	require.Equal(t, 1, processors())
}

func TestALockThatIsHeldForLongTriesNothing(t *testing.T) {
	p := &pace{since: time.Hour}
	p.take(10*plainTry, 2000, procs)
	require.Equal(t, tryPlain, p.phase)
	require.False(t, p.ahead)

	p = &pace{since: time.Hour}
	p.take(plainTry-tooMany, 900, procs)
	p.take(tooMany, 2000, procs) // as good as begun anew
	p.take(plainTry-1, 900, procs)
	require.Equal(t, tryPlain, p.phase)
	p.take(1, 900, procs)
	require.Equal(t, tryAhead, p.phase)
}

func TestATryCountsForMoreThanTheMomentsInWhichAProcessorWasTakenAway(t *testing.T) {
	for _, at := range [][]int{{0, 1, 2, 3, 4, 5}, {13}, {23}, {12, 20}, {16, 17}} {
		p := &pace{since: time.Hour}
		p.take(plainTry, 950, procs)
		for i := range aheadTry {
			if slices.Contains(at, i) {
				p.take(1, time.Millisecond, procs)
			} else {
				p.take(1, 550, procs)
			}
		}
		require.Equal(t, decided, p.phase)
		require.True(t, p.ahead, "slow at %d", at)
	}
}

func TestALockThatIsSlowWhenTheNextOneWakesUpEarlyStaysWithoutThat(t *testing.T) {
	p := &pace{since: time.Hour}
	p.take(plainTry, 900, procs)
	require.True(t, p.ahead)
	p.take(settlingAhead+tooMany, 2000, procs)
	require.False(t, p.ahead)
	require.Equal(t, decided, p.phase)
	p.take(term, 900, procs)
	require.False(t, p.ahead)
}

func TestADecisionAgainstWakingEarlyIsLookedAtAgainSoonAndThenLessOften(t *testing.T) {
	p := tried(900, 900)
	last := 0
	for range 10 {
		n := 0
		for ; p.phase == decided; n++ {
			require.False(t, p.ahead)
			p.take(1, 900, procs)
		}
		require.True(t, n == min(2*last, term) || last == 0 && n == term/16, "%d after %d", n, last)
		last = n
		p.take(plainTry, 900, procs)
		p.take(aheadTry, 900, procs)
	}
	require.Equal(t, term, last)
	for p.phase == decided {
		p.take(1, 900, procs)
	}
	p.take(plainTry, 900, procs)
	p.take(aheadTry, 600, procs)
	require.True(t, p.ahead)
	p.take(termAhead-1, 600, procs)
	require.True(t, p.ahead)
	p.take(1+plainTry, 900, procs)
	p.take(aheadTry, 900, procs)
	p.take(term/16, 900, procs)
	require.Equal(t, tryPlain, p.phase, "as if it had never been in vain")
}

func TestAClockThatGoesBackIsNoMeasure(t *testing.T) {
	p := &pace{since: time.Hour}
	p.take(plainTry, 900, procs)
	p.take(aheadTry-1, 550, procs)
	p.measure(p.since-1e9*time.Second, procs)
	require.Equal(t, decided, p.phase)
	require.True(t, p.ahead)
	p = &pace{since: time.Hour}
	p.take(plainTry, 900, procs)
	p.take(aheadTry-1, 800, procs)
	p.measure(p.since-1e9*time.Second, procs)
	require.Equal(t, decided, p.phase)
	require.False(t, p.ahead, "it has not taken less than no time")
}

func TestADecisionOutlastsSomePausesButNotSoManyInARow(t *testing.T) {
	p := tried(900, 600)
	p.take(10, 600, procs)
	for range 10 {
		p.take(tooManyInARow-1, time.Millisecond, procs)
		p.take(1, 600, procs)
	}
	require.True(t, p.ahead)
	p.take(tooManyInARow, time.Millisecond, procs)
	require.False(t, p.ahead)
	require.Equal(t, tryPlain, p.phase)
}

// early returns a held lock whose next waiter is woken before its turn, and spins for longer if long, and n calls that wait for it.
func early(t *testing.T, n int, long bool) (*Sync, []call) {
	s := new(Sync)
	s.WakeEarly(long)
	require.True(t, s.TryLock(Owned(1)))
	var waiters []call
	for i := range n {
		waiters = append(waiters, run(func() bool { return s.Lock(Owned(int64(i+2)), FIFO) }))
		eventually(t, func() bool { return s.Len() == i+1 })
	}
	return s, waiters
}

// spinners runs f for those who spin before their turn, briefly and for longer.
func spinners(t *testing.T, f func(t *testing.T, state uint32)) {
	t.Run("briefly", func(t *testing.T) { f(t, roused) })
	t.Run("for longer", func(t *testing.T) { f(t, poised) })
}

// first returns the state of the first waiter.
func (s *Sync) first() uint32 {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.queue.head.state.Load()
}

func TestAWaiterThatWokeUpTooEarlySleepsAgainAndGetsTheLockInTurn(t *testing.T) {
	spinners(t, func(t *testing.T, state uint32) {
		s, waiters := early(t, 3, state == poised)
		require.True(t, s.Unlock(FIFO))
		require.True(t, waiters[0].result(t))
		require.EqualValues(t, 2, s.Owner())
		eventually(t, func() bool { return s.first() == asleep }) // it was roused, and has given up
		require.NoError(t, s.Verify())

		for i := 1; i < 3; i++ {
			require.True(t, s.Unlock(FIFO))
			require.True(t, waiters[i].result(t))
			require.EqualValues(t, i+2, s.Owner(), "in the order of the queue")
		}
		require.True(t, s.Unlock(FIFO))
		require.Zero(t, s.Word.Load())
	})
}

func TestAWaiterIsGrantedTheLockBeforeItsEarlyWakeUpArrives(t *testing.T) {
	spinners(t, func(t *testing.T, state uint32) {
		s, waiters := early(t, 2, state == poised)

		// What the release does, up to the wake-ups.
		s.guard.Lock()
		holder := s.release(FIFO, 0)
		next := s.ahead(FIFO)
		s.guard.Unlock()
		require.NotNil(t, next)
		require.Equal(t, state, s.first())
		unpark(holder)
		require.True(t, waiters[0].result(t))

		// The one who was to be roused gets the lock, and no other wake-up than that which is on its way.
		require.True(t, s.Unlock(FIFO))
		require.EqualValues(t, 3, s.Owner())
		require.NoError(t, s.Verify())
		select {
		case <-waiters[1].done:
			t.Fatal("nobody has unparked it")
		case <-time.After(10 * time.Millisecond):
		}
		next.place.Unpark()
		require.True(t, waiters[1].result(t))
		require.True(t, s.Unlock(FIFO))
		require.Zero(t, s.Word.Load())
	})
}

func TestTheNextOfSeveralWhoWereSignalledWakesUpEarlyToo(t *testing.T) {
	s := new(Sync)
	s.WakeEarly(false)
	c := NewCond(s, FIFO)
	var waiters []call
	for i := range 3 {
		waiters = append(waiters, run(func() bool {
			p := Owned(int64(i + 2))
			ok := s.Lock(p, FIFO)
			c.Wait(p)
			return ok && s.Owner() == int64(i+2)
		}))
		eventually(t, func() bool { return c.Len() == i+1 })
	}
	require.True(t, s.Lock(Owned(1), FIFO))
	require.Equal(t, 3, c.Broadcast())
	s.guard.Lock()
	holder := s.release(FIFO, 0)
	next := s.ahead(FIFO)
	s.guard.Unlock()
	require.NotNil(t, next)
	next.place.Unpark()
	eventually(t, func() bool { return s.first() == asleep }) // it has given up
	unpark(holder)
	for i := range 3 {
		require.True(t, waiters[i].result(t))
		require.True(t, s.Unlock(FIFO))
	}
	require.Zero(t, s.Word.Load())
}

func TestNobodyIsWokenEarlyWhoseWaitCanEndOtherwiseOrBehindReaders(t *testing.T) {
	s := new(Sync)
	s.WakeEarly(false)
	ahead := func() *node {
		s.guard.Lock()
		defer s.guard.Unlock()
		return s.ahead(FIFO)
	}
	require.Nil(t, ahead(), "there is nobody")

	require.True(t, s.TryLock(Owned(1)))
	limited := run(func() bool { return s.LockFor(Owned(2), FIFO, time.Minute) })
	eventually(t, func() bool { return s.Len() == 1 })
	require.Nil(t, ahead())
	require.True(t, s.Unlock(FIFO))
	require.True(t, limited.result(t))

	s.Downgrade()
	writer := run(func() bool { return s.Lock(Owned(3), FIFO) })
	eventually(t, func() bool { return s.Len() == 1 })
	require.Nil(t, ahead(), "readers may read for long")
	require.True(t, s.Unlock(FIFO))
	require.True(t, writer.result(t))
	require.True(t, s.Unlock(FIFO))
	require.Zero(t, s.Word.Load())
}

func TestALockOfAnotherPolicyWakesNobodyEarly(t *testing.T) {
	s := new(Sync)
	s.WakeEarly(false)
	require.True(t, s.TryLock(Owned(1)))
	waiter := run(func() bool { return s.Lock(Owned(2), NonFair) })
	eventually(t, func() bool { return s.Len() == 1 })
	s.guard.Lock()
	require.Nil(t, s.ahead(NonFair))
	s.guard.Unlock()
	require.True(t, s.Unlock(NonFair))
	require.True(t, waiter.result(t))
	require.True(t, s.Unlock(NonFair))
}

func TestAWaiterThatGivesUpSpinningMissesNoGrant(t *testing.T) {
	spinners(t, func(t *testing.T, state uint32) {
		rounds, spins := 20_000, expectRounds
		if state == poised {
			rounds, spins = 2000, poisedRounds
		}
		var n node
		begun, was := make(chan int), make(chan uint32)
		go func() {
			for i := range begun {
				for range (spins - 100 + i%150) / 10 { // about as long as it spins
					pause.Pause(10)
				}
				was <- n.state.Swap(granted)
			}
		}()
		defer close(begun)
		for i := range rounds {
			n.state.Store(state)
			begun <- i
			has := n.expect()
			require.Equal(t, has, <-was == state, "it sleeps if it is to be unparked, and only then")
			require.Equal(t, granted, n.state.Load(), "round %d", i)
		}
	})
}

func TestNobodySpinsForLongUnlessTheSystemHasLeftTheProcessorsAloneForLong(t *testing.T) {
	s, _ := early(t, 1, false)
	wakeUp := func() (state uint32) {
		s.guard.Lock()
		n := s.ahead(FIFO)
		require.NotNil(t, n)
		state = n.state.Load()
		require.True(t, n.state.CompareAndSwap(state, asleep)) // it has not been unparked
		s.guard.Unlock()
		return state
	}
	pass := func(each time.Duration, periods int) {
		s.guard.Lock()
		defer s.guard.Unlock()
		s.pace.take(periods, each, procs)
		s.pace.ahead, s.pace.phase, s.pace.slow = true, decided, 0
	}
	pass(600, calmFor-1)
	require.Equal(t, roused, wakeUp())
	pass(600, 1)
	require.Equal(t, poised, wakeUp())
	pass(stalled/period, 10)
	require.Equal(t, poised, wakeUp(), "the lock may have been held for long")
	pass(stalled/period+1, 1)
	require.Equal(t, roused, wakeUp())
	pass(600, calmFor-1)
	require.Equal(t, roused, wakeUp())
	pass(600, 1)
	require.Equal(t, poised, wakeUp())
	require.True(t, s.Unlock(FIFO))
}

func TestWhoIsPoisedSpinsForMuchLonger(t *testing.T) {
	least := map[uint32]time.Duration{roused: time.Hour, poised: time.Hour} // of several: a processor may be taken away
	for range 50 {
		for state := range least {
			var n node
			n.state.Store(state)
			began := time.Now()
			require.False(t, n.expect())
			require.Equal(t, asleep, n.state.Load())
			least[state] = min(least[state], time.Since(began))
		}
	}
	require.Greater(t, least[poised], 4*least[roused])
}

func TestOneInSoManyWaitersThatAreRousedEarlyLetsOthersRunFirst(t *testing.T) {
	var s Sync
	s.WakeEarly(true)
	s.Word.Store(one | queued)
	n := newNode(Anonymous(1), false)
	n.patient = true
	s.queue.push(n)
	times := 0
	for range 2 * breathe {
		s.pace.since = now() // no period was slow
		require.Same(t, n, s.ahead(FIFO))
		if n.breathe {
			times++
			n.breathe = false
		}
		n.state.Store(asleep)
	}
	require.Equal(t, 2, times)
	require.Equal(t, 1, breathe%2)

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ran := make(chan struct{})
	go close(ran)
	others := false
	for i := 0; i < 5 && !others; i++ { // once in a while the scheduler looks elsewhere first, and finds n's user again
		n.state.Store(granted)
		n.breathe = true
		require.True(t, n.expect())
		select {
		case <-ran:
			others = true
		default:
		}
	}
	require.True(t, others)
}

// A wait ends by an unpark if, and only if, the grant came when the waiter was asleep again.
func TestAGrantThatComesAsTheSpinEndsIsNotOverlooked(t *testing.T) {
	n := newNode(Anonymous(1), false)
	n.patient = true
	grants := make(chan uint32)
	go func() {
		defer close(grants)
		for i := range uint32(20_000) {
			grants <- i
			pause.Pause(i % 400)
			if n.state.Swap(granted) == asleep {
				n.place.Unpark()
			}
		}
	}()
	for {
		n.state.Store(roused)
		if _, ok := <-grants; !ok {
			break
		}
		if !n.expect() {
			n.place.Wait()
		}
		require.Equal(t, granted, n.state.Load())
	}
}

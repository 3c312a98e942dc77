//go:build lockexplore

package explore

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

func abba(x *X) {
	var a, b fair.Mutex
	x.Go("one", func() {
		a.Lock()
		b.Lock()
		b.Unlock()
		a.Unlock()
	})
	x.Go("two", func() {
		b.Lock()
		a.Lock()
		a.Unlock()
		b.Unlock()
	})
}

func TestTwoLocksInTwoOrdersDeadlock(t *testing.T) {
	r := search(t, configure(nil), abba)
	require.NotNil(t, r.finding)
	require.Equal(t, Deadlock, r.finding.Kind)
	t.Log(r.report())
	for range 20 {
		again := search(t, configure([]Option{Replay(r.replay())}), abba)
		require.NoError(t, again.err)
		again.schedules = r.schedules
		require.Equal(t, r.report(), again.report())
	}
}

func TestASleepOfYearsEnds(t *testing.T) {
	correct(t, func(x *X) {
		var m fair.Mutex
		m.Lock()
		x.Go("unlocks", func() {
			time.Sleep(100 * 365 * 24 * time.Hour)
			m.Unlock()
		})
		m.Lock()
	})
}

func TestADeadlockBesideATickerIsFound(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = 10 * time.Millisecond
	r := search(t, configure(nil), func(x *X) {
		go func() {
			ticker := time.NewTicker(time.Minute)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
				case <-x.Context().Done():
					return
				}
			}
		}()
		var m fair.Mutex
		m.Lock()
		m.Lock()
	})
	require.NotNil(t, r.finding)
	require.Equal(t, Deadlock, r.finding.Kind)
}

func TestAReplayMayTakeAnyTime(t *testing.T) {
	was := hang
	defer func() { hang = was }()
	hang = 1
	r := search(t, configure([]Option{Replay("2:2")}), func(x *X) {
		for range 1000 {
			runtime.Gosched()
		}
		abba(x)
	})
	require.NoError(t, r.err)
	require.Equal(t, Deadlock, r.finding.Kind)
}

func TestACounterUnderALockIsCorrect(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var m reentrant.Mutex
		n := 0
		for range 3 {
			x.Go("adds", func() {
				m.Lock()
				n++
				m.Unlock()
			})
		}
		x.Wait()
		x.Check(n == 3, "n is %d", n)
	})
	require.Nil(t, r.finding)
	t.Log(r.schedules, r.complete)
}

// working starts a worker, lets a goroutine give it work, and then closes the channel if closes is
// set.
func working(closes bool) func(x *X) {
	return func(x *X) {
		var m fair.Mutex
		c := m.NewCond()
		work, done, closed := 0, 0, false
		go func() {
			m.Lock()
			defer m.Unlock()
			for !closed || work > 0 {
				if work == 0 {
					c.Wait()
					continue
				}
				work--
				done++
			}
		}()
		x.Go("gives", func() {
			m.Lock()
			work++
			c.Signal()
			m.Unlock()
		})
		x.Wait()
		m.Lock()
		x.Check(done == 1, "%d done", done)
		closed = closes
		c.Broadcast()
		m.Unlock()
	}
}

func TestAWorkerIsEndedAfterWait(t *testing.T) { correct(t, working(true)) }

func TestAWorkerThatIsNotEndedIsReported(t *testing.T) {
	r := search(t, configure(nil), working(false))
	require.NotNil(t, r.finding)
	require.Equal(t, LostWakeup, r.finding.Kind)
	require.NotContains(t, r.report(), "until all goroutines have ended")
}

// chooses lets a goroutine take one of two locks. Something other than locks decides which lock.
func chooses(second func() bool) func(x *X) {
	return func(x *X) {
		var a, b fair.Mutex
		x.Go("chooses", func() {
			if second() {
				b.Lock()
				b.Unlock()
				x.Step()
				return
			}
			a.Lock()
			a.Unlock()
		})
		x.Go("locks", func() {
			a.Lock()
			a.Unlock()
		})
	}
}

func TestALockProgramIsSearchedWithoutDoubt(t *testing.T) {
	r := correct(t, chooses(func() bool { return true }))
	require.NotEmpty(t, r.complete)
	require.Empty(t, r.doubt)
}

func TestAScheduleThatLeadsElsewhereIsNotAll(t *testing.T) {
	ready := make(chan int, 2)
	for name, second := range map[string]func() bool{
		"random number": func() bool { return rand.IntN(2) == 0 },
		"select": func() bool {
			a, b := make(chan int, 1), make(chan int, 1)
			a <- 1
			b <- 1
			select {
			case <-a:
				return true
			case <-b:
				return false
			}
		},
		"map order": func() bool {
			for k := range map[int]bool{1: true, 2: true} {
				return k == 1
			}
			return false
		},
		"variable outside": func() bool { ready <- 1; return len(ready) == 2 && <-ready+<-ready > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; ; i++ { // by chance, all runs may choose alike
				r := correct(t, chooses(second), Schedules(DefaultSchedules/10))
				if r.doubt == strays {
					return
				}
				require.Less(t, i, 20)
			}
		})
	}
}

func TestAWaitOutsideOfLocksIsNotAll(t *testing.T) {
	r := correct(t, func(x *X) {
		var m fair.Mutex
		c := make(chan int)
		x.Go("receives", func() {
			<-c
			m.Lock()
			m.Unlock()
		})
		x.Go("sends", func() {
			m.Lock()
			m.Unlock()
			c <- 1
		})
	})
	require.Equal(t, outside, r.doubt)
}

func TestPassingTimeIsNotAll(t *testing.T) {
	r := correct(t, func(x *X) {
		var m fair.Mutex
		m.Lock()
		x.Go("waits", func() { m.TryLockFor(time.Second) })
	})
	require.Equal(t, elapsed, r.doubt)
}

func TestAGoroutineWithoutGoIsNotAll(t *testing.T) {
	r := correct(t, func(x *X) {
		var m fair.Mutex
		go func() {
			m.Lock()
			m.Unlock()
		}()
		x.Wait()
		m.Lock()
		m.Unlock()
	})
	require.Equal(t, unseen, r.doubt)
}

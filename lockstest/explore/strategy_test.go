//go:build lockexplore

package explore

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/spin"
)

// mistake returns a program of the corpus.
func mistake(t *testing.T, name string) func(x *X) {
	t.Helper()
	i := slices.IndexFunc(corpus, func(p pair) bool { return p.name == name })
	require.GreaterOrEqual(t, i, 0)
	return corpus[i].wrong
}

func TestEachStrategyFindsTheDeadlock(t *testing.T) {
	for name, o := range map[string]Option{
		"depth first": Preemptions(1), "PCT": PCT(2, 7), "random": Random(7),
	} {
		t.Run(name, func(t *testing.T) {
			r := search(t, configure([]Option{o}), abba)
			require.NotNil(t, r.finding)
			require.Equal(t, Deadlock, r.finding.Kind)
		})
	}
}

func TestTheSameSeedFindsTheSameSchedule(t *testing.T) {
	for _, o := range []Option{PCT(3, 11), Random(11)} {
		first := search(t, configure([]Option{o}), mistake(t, "three philosophers take the left fork first"))
		second := search(t, configure([]Option{o}), mistake(t, "three philosophers take the left fork first"))
		require.NotNil(t, first.finding)
		require.Equal(t, first.schedules, second.schedules)
		require.Equal(t, first.report(), second.report())
	}
}

func TestARandomScheduleIsShrunkToItsOnePreemption(t *testing.T) {
	for seed := range uint64(20) {
		r := search(t, configure([]Option{Random(seed)}), abba)
		require.NotNil(t, r.finding)
		require.Len(t, r.list, 1, "%s", r.report())
	}
}

func TestNoPreemptionMeansNoDeadlock(t *testing.T) {
	r := correct(t, abba, Preemptions(0))
	require.NotEmpty(t, r.complete)
	require.Equal(t, 2, r.schedules, "the goroutines run one after the other, in either order")
}

func TestDepthFirstTriesEachScheduleOnce(t *testing.T) {
	seen := map[string]bool{}
	c := configure(nil)
	s := &depthFirst{bound: 3, now: 3}
	f := func(x *X) {
		var m fair.Mutex
		for range 2 {
			x.Go("locks", func() {
				m.Lock()
				m.Unlock()
			})
		}
	}
	one.Lock()
	defer one.Unlock()
	for s.begin() {
		x := execute(t, c, f, s, false)
		s.end(x.decisions)
		list := schedule(deviations(x.decisions))
		require.False(t, seen[list], "twice: %s", list)
		seen[list] = true
	}
	require.Greater(t, len(seen), 10)
}

func TestASearchEndsWithItsNumberOfSchedules(t *testing.T) {
	r := correct(t, corpus[0].right, Schedules(7))
	require.Equal(t, 7, r.schedules)
	require.Empty(t, r.complete)
}

func TestASearchEndsWithItsTime(t *testing.T) {
	r := correct(t, corpus[0].right, Within(0))
	require.Zero(t, r.schedules)
}

func TestARunWithoutAnEndIsFound(t *testing.T) {
	r := search(t, configure([]Option{Steps(200)}), func(x *X) {
		x.Go("loops", func() {
			for {
				x.Step()
			}
		})
	})
	require.NotNil(t, r.finding)
	require.Equal(t, Endless, r.finding.Kind)
}

func TestALoopOfTriesLetsTheHolderRun(t *testing.T) {
	for _, o := range []Option{Preemptions(1), PCT(3, 1)} {
		correct(t, func(x *X) {
			var m fair.Mutex
			x.Go("holds", func() {
				m.Lock()
				x.Step()
				m.Unlock()
			})
			x.Go("tries", func() {
				var b spin.Backoff
				for !m.TryLock() {
					b.Pause()
				}
				m.Unlock()
			})
		}, o, Schedules(300), Steps(5000))
	}
}

func TestWrongSchedulesAreRefused(t *testing.T) {
	for _, text := range []string{"x", "1", "1:", ":1", "-1:2", "1:-2", "1:x"} {
		_, _, _, err := parse(text)
		require.ErrorContains(t, err, "is no schedule", text)
	}
	for _, text := range []string{"", "0:1", "3:2 14:t"} {
		list, _, _, err := parse(text)
		require.NoError(t, err)
		require.Equal(t, text, schedule(list))
	}
}

func TestTheClockOfARunIsVirtual(t *testing.T) {
	correct(t, func(x *X) {
		began := time.Now()
		x.Go("sleeps", func() { time.Sleep(time.Hour) })
		x.Wait()
		x.Check(time.Since(began) == time.Hour, "%v", time.Since(began))
	})
}

func TestAGoroutineOfTheProgramItselfIsExplored(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var a, b fair.Mutex
		both := func(first, second *fair.Mutex) {
			first.Lock()
			second.Lock()
			second.Unlock()
			first.Unlock()
		}
		go both(&a, &b)
		both(&b, &a)
	})
	require.NotNil(t, r.finding)
	require.Equal(t, Deadlock, r.finding.Kind)
}

func TestGoroutinesOfTheProgramItselfAreReplayed(t *testing.T) {
	f := func(x *X) {
		var forks [3]fair.Mutex
		var wg sync.WaitGroup
		for i := range forks {
			wg.Go(func() {
				forks[i].Lock()
				forks[(i+1)%3].Lock()
				forks[(i+1)%3].Unlock()
				forks[i].Unlock()
			})
		}
		wg.Wait()
	}
	r := search(t, configure(nil), f)
	require.NotNil(t, r.finding)
	for range 20 {
		again := search(t, configure([]Option{Replay(r.replay())}), f)
		require.NoError(t, again.err)
		again.schedules = r.schedules
		require.Equal(t, r.report(), again.report())
	}
}

func TestAReportNamesLocksAndGoroutines(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var m fair.Mutex
		x.Name(&m, "the only one")
		for range 2 {
			x.Go("locks", func() { m.Lock() })
		}
	})
	require.NotNil(t, r.finding)
	report := r.report()
	require.Contains(t, report, "locks (2) waits in Lock of the only one at strategy_test.go:")
	require.Contains(t, report, "held by locks at strategy_test.go:")
	require.Regexp(t, `Lock the only one strategy_test.go:\d+ waits`, report)
}

func TestAPanicIsReportedWithItsLine(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var m fair.Mutex
		x.Go("unlocks", m.Unlock)
	})
	require.NotNil(t, r.finding)
	require.Equal(t, Panic, r.finding.Kind)
	require.Contains(t, r.report(), "panic in unlocks")
}

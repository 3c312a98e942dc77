//go:build lockexplore

package explore

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

// forgets has a goroutine that unlocks or not. Something decides which.
func forgets(unlocks func(x *X) bool) func(x *X) {
	return func(x *X) {
		var m fair.Mutex
		for range 2 {
			x.Go("locks", func() {
				m.Lock()
				if unlocks(x) {
					m.Unlock()
				}
			})
		}
	}
}

// randomly are the ways in which something besides the explorer decides.
var randomly = map[string]func(x *X) bool{
	"random number": func(*X) bool { return rand.IntN(4) > 0 },
	"select": func(*X) bool {
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
	"map order": func(*X) bool {
		for k := range map[int]bool{1: true, 2: true, 3: true} {
			return k != 1
		}
		return false
	},
}

func TestAMistakeBySomethingElseIsFoundAndReplayed(t *testing.T) {
	for name, unlocks := range randomly {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				r := search(t, configure(nil), forgets(unlocks))
				require.NotNil(t, r.finding)
				require.Equal(t, Deadlock, r.finding.Kind)
				list := schedule(r.list)
				if r.strayed {
					require.Contains(t, r.report(), "Something besides the explorer decides")
					require.Contains(t, r.report(), repeated+`")`)
					list += " " + repeated
				}
				again := search(t, configure([]Option{Replay(r.replay())}), forgets(unlocks))
				require.NoError(t, again.err)
				require.NotNil(t, again.finding)
				require.Equal(t, Deadlock, again.finding.Kind)
			}
		})
	}
}

func TestTheOrderOfAMultiIsTheSameInEachRun(t *testing.T) {
	for range 20 {
		r := correct(t, func(x *X) {
			both := locks.Multi(new(fair.Mutex), new(reentrant.Mutex))
			for range 2 {
				x.Go("locks", func() {
					x.Check(both.LockContext(x.Context()) == nil, "not acquired")
					x.Check(both.UnlockContext(x.Context()) == nil, "not released")
				})
			}
		})
		require.False(t, r.strayed)
	}
}

func TestAChoiceIsADecisionThatReplays(t *testing.T) {
	for name, unlocks := range map[string]func(x *X) bool{
		"Choose": func(x *X) bool { return x.Choose(5) != 3 },
		"Select": func(x *X) bool {
			a, b := make(chan int, 1), make(chan int, 1)
			a <- 1
			b <- 1
			return x.Select(Receive(a, nil), Receive(b, nil)) == 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := search(t, configure(nil), forgets(unlocks))
			require.NotNil(t, r.finding)
			require.False(t, r.strayed)
			for range 20 {
				again := search(t, configure([]Option{Replay(r.replay())}), forgets(unlocks))
				require.NoError(t, again.err)
				again.schedules = r.schedules
				require.Equal(t, r.report(), again.report())
			}
		})
	}
}

func TestSelectTakesEveryReadyCase(t *testing.T) {
	taken := map[int]bool{}
	r := correct(t, func(x *X) {
		a, b, full := make(chan int, 1), make(chan string, 1), make(chan int)
		a <- 7
		n, s := 0, ""
		i := x.Select(
			Receive(a, func(v int, ok bool) { n = v; x.Check(ok, "closed") }),
			Send(b, "sent", func() { s = "sent" }),
			Send(full, 1, nil), Receive[int](nil, nil),
			Default(func() { x.Errorf("two are ready") }))
		taken[i] = true
		x.Check(i == 0 && n == 7 || i == 1 && s == "sent", "%d: %d, %q", i, n, s)
		x.Check(x.Select(Receive(full, nil), Default(nil)) == 1, "nothing is ready")
		close(a)
		if i == 0 {
			x.Check(x.Select(Receive(a, func(v int, ok bool) { x.Check(v == 0 && !ok, "%d", v) })) == 0, "closed")
		}
	})
	require.Equal(t, map[int]bool{0: true, 1: true}, taken)
	require.Equal(t, "which are all that there are", r.complete)
}

func TestSelectWaitsForTheFirstCase(t *testing.T) {
	correct(t, func(x *X) {
		a, b := make(chan int), make(chan int)
		x.Go("sends", func() {
			x.Step()
			b <- 3
		})
		x.Check(x.Select(Receive(a, nil), Receive(b, func(v int, _ bool) { x.Check(v == 3, "%d", v) })) == 1, "b")
	})
}

func TestAMistakeThatNeedsThreePreemptionsIsFound(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var m fair.Mutex
		steps := 0
		turn := func(of func(n int) bool) func() {
			return func() {
				for range 3 {
					m.Lock()
					if of(steps) {
						steps++
					}
					m.Unlock()
				}
			}
		}
		x.Go("even", turn(func(n int) bool { return n%2 == 0 }))
		x.Go("odd", turn(func(n int) bool { return n%2 == 1 }))
		x.Wait()
		x.Check(steps < 6, "each one had its turns")
	})
	require.NotNil(t, r.finding)
	require.Equal(t, Failure, r.finding.Kind)
	require.LessOrEqual(t, r.schedules, DefaultSchedules)
}

// reduced returns the options of a search depth first with the reduction or without.
func depthFirstOnly(reduce bool, preemptions, schedules int) *config {
	c := configure([]Option{Schedules(schedules), Within(time.Minute)})
	c.wants = preemptions
	c.phases = func() []phase { return []phase{{&depthFirst{bound: preemptions, reduce: reduce}, math.MaxInt, false}} }
	return c
}

func TestTheReductionFindsWhatTheFullSearchFinds(t *testing.T) {
	full, less := 0, 0
	for _, p := range corpus {
		t.Run(p.name, func(t *testing.T) {
			c, d := depthFirstOnly(false, 2, most), depthFirstOnly(true, 2, most)
			if slices.Contains([]Kind{Starvation}, p.kind) {
				return // it is searched without the reduction
			}
			want, got := search(t, c, p.wrong), search(t, d, p.wrong)
			require.NotNil(t, want.finding)
			require.NotNil(t, got.finding)
			require.Equal(t, want.finding.Kind, got.finding.Kind)
			require.Equal(t, p.kind, got.finding.Kind)
			again := search(t, configure([]Option{Replay(got.replay())}), p.wrong)
			require.NoError(t, again.err)
			require.NotNil(t, again.finding)
		})
		t.Run(p.name+", right", func(t *testing.T) {
			f, r := search(t, depthFirstOnly(false, 2, 3000), p.right), search(t, depthFirstOnly(true, 2, 3000), p.right)
			require.Nil(t, f.finding)
			require.Nil(t, r.finding)
			require.False(t, f.complete != "" && r.complete == "", "the reduction is no less complete")
			if f.complete != "" {
				full, less = full+f.schedules, less+r.schedules
			}
		})
	}
	t.Logf("right programs that the full search completes: %d schedules, and %d with the reduction", full, less)
	require.Less(t, less, full)
}

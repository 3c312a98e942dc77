//go:build lockexplore

package explore

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
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

// unordered is a lock without a place in the order of a Multi.
type unordered struct {
	*fair.Mutex
	refused *atomic.Int32 // how often a try has failed
}

func (l unordered) TryLockContext(ctx context.Context) (bool, error) {
	ok, err := l.Mutex.TryLockContext(ctx)
	if !ok {
		l.refused.Add(1)
	}
	return ok, err
}

// crossing lets two goroutines acquire two locks without an order at once. If exclusive is set, the
// goroutines cannot lose the locks.
func crossing(x *X, exclusive bool, a, b locks.TryLocker) {
	var inside atomic.Int32
	for _, both := range []locks.TryLocker{locks.Multi(a, b), locks.Multi(b, a)} {
		x.Go("acquires", func() {
			if both.LockContext(x.Context()) != nil {
				return
			}
			x.Check(inside.Add(1) == 1 || !exclusive, "two have both locks")
			x.Step()
			inside.Add(-1)
			_ = both.UnlockContext(x.Context())
		})
	}
}

func TestAMultiWithoutAnOrderIsSearchedExactly(t *testing.T) {
	var refused atomic.Int32
	r := correct(t, func(x *X) {
		crossing(x, true, unordered{new(fair.Mutex), &refused}, unordered{new(fair.Mutex), &refused})
	})
	require.NotZero(t, refused.Load(), "there was a pause")
	require.False(t, r.strayed)
	require.Empty(t, r.doubt)
	require.NotEmpty(t, r.complete)
}

func TestAMultiOfLeasesHasTheSameRunAfterTheSameDecisions(t *testing.T) {
	r := correct(t, func(x *X) { crossing(x, false, x.NewLease("a"), x.NewLease("b")) }, atMost(2000))
	require.False(t, r.strayed)
	require.Empty(t, r.doubt)
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

// Without a preemption, this program has more schedules than can be tried. Its schedule is
// shortened until the time for that is over.
func TestAMistakeOfALongProgramIsFoundBySamples(t *testing.T) {
	defer func(was time.Duration) { shrinking = was }(shrinking)
	shrinking = 100 * time.Millisecond
	r := search(t, configure([]Option{Schedules(samples)}), func(x *X) {
		var all fair.RWMutex
		var one fair.Mutex
		for range 50 {
			x.Go("gets", func() {
				for range 10 {
					all.Lock()
					one.Lock()
					all.Unlock()
					all.RLock()
					one.Unlock()
					all.RUnlock()
				}
			})
		}
	})
	require.NotNil(t, r.finding)
	require.LessOrEqual(t, r.schedules, 10)
	require.Equal(t, Deadlock, r.finding.Kind)
}

// depthFirstOnly returns the options of a search depth first with a reduction.
func depthFirstOnly(reduce reduction, preemptions, schedules int) *config {
	c := configure([]Option{Schedules(schedules), Within(time.Minute)})
	c.wants = preemptions
	c.phases = func() []phase { return []phase{{&depthFirst{bound: preemptions, reduce: reduce}, math.MaxInt, false}} }
	return c
}

func TestEachReductionFindsWhatTheFullSearchFinds(t *testing.T) {
	full, less := 0, map[reduction]int{}
	for _, p := range corpus {
		if p.kind == Starvation {
			continue // it is searched without a reduction
		}
		t.Run(p.name, func(t *testing.T) {
			want := search(t, depthFirstOnly(noReduction, 2, most), p.wrong)
			require.NotNil(t, want.finding)
			for _, reduce := range []reduction{byStates, byHolds} {
				got := search(t, depthFirstOnly(reduce, 2, most), p.wrong)
				require.NotNil(t, got.finding)
				require.Equal(t, p.kind, got.finding.Kind)
				again := search(t, configure([]Option{Replay(got.replay())}), p.wrong)
				require.NoError(t, again.err)
				require.NotNil(t, again.finding)
			}
		})
		t.Run(p.name+", right", func(t *testing.T) {
			most := configure([]Option{atMost(3000)}).schedules
			f := search(t, depthFirstOnly(noReduction, 2, most), p.right)
			require.Nil(t, f.finding)
			if f.complete != "" {
				full += f.schedules
			}
			for _, reduce := range []reduction{byStates, byHolds} {
				r := search(t, depthFirstOnly(reduce, 2, most), p.right)
				require.Nil(t, r.finding)
				require.False(t, f.complete != "" && r.complete == "", "the reduction is no less complete")
				if f.complete != "" {
					less[reduce] += r.schedules
				}
			}
		})
	}
	t.Logf("right programs that the full search completes: %d schedules, %d by states, %d by holds",
		full, less[byStates], less[byHolds])
	require.Less(t, less[byStates], full)
	require.Less(t, less[byHolds], less[byStates])
}

// holdOrders returns the orders in which goroutines get one lock, and the number of schedules.
func holdOrders(t *testing.T, n, sections, preemptions int, reduce reduction) (orders map[string]bool, schedules int) {
	t.Helper()
	orders = map[string]bool{}
	s := &depthFirst{bound: preemptions, reduce: reduce}
	f := func(x *X) {
		var m fair.Mutex
		order := ""
		for i := range n {
			x.Go("works", func() {
				for range sections {
					m.Lock()
					order += string(rune('a' + i))
					m.Unlock()
				}
			})
		}
		x.Wait()
		orders[order] = true
	}
	one.Lock()
	defer one.Unlock()
	for s.begin() {
		s.end(execute(t, configure(nil), f, s, false).decisions)
		schedules++
	}
	return orders, schedules
}

func TestTheReductionByStatesKeepsTheOrdersOfHolds(t *testing.T) {
	for _, n := range [][2]int{{2, 2}, {2, 3}, {3, 2}} {
		for preemptions := range 3 {
			want, full := holdOrders(t, n[0], n[1], preemptions, noReduction)
			got, less := holdOrders(t, n[0], n[1], preemptions, byStates)
			require.Equal(t, want, got)
			t.Logf("%d goroutines, %d sections, %d preemptions: %d schedules, and %d",
				n[0], n[1], preemptions, full, less)
		}
	}
}

func TestTheReductionByHoldsKeepsTheOrdersOfHolds(t *testing.T) {
	for _, n := range [][2]int{{2, 3}, {3, 2}} {
		// Without a bound, the orders of the holds are all that there are.
		all := map[[2]int]int{{2, 3}: 20, {3, 2}: 90}[n]
		got, _ := holdOrders(t, n[0], n[1], 100, byHolds)
		require.Len(t, got, all)
		// With a bound, each change away from a goroutine that has sections left is a preemption.
		for preemptions := range 3 {
			want := 0
			for order := range got {
				if changes(order, n[1]) <= preemptions {
					want++
				}
			}
			some, _ := holdOrders(t, n[0], n[1], preemptions, byHolds)
			require.Len(t, some, want)
		}
	}
}

// changes returns how often an order leaves a goroutine before its last section.
func changes(order string, sections int) (n int) {
	had := map[byte]int{}
	for i := range len(order) {
		if had[order[i]]++; i+1 < len(order) && order[i+1] != order[i] && had[order[i]] < sections {
			n++
		}
	}
	return n
}

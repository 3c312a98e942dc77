package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// watched checks a lock while it is simulated.
type watched struct {
	lock
	t      *testing.T
	inside int
}

func (w *watched) acquire(t *task, then func()) {
	w.lock.acquire(t, func() {
		w.inside++
		require.Equal(w.t, 1, w.inside, "holders")
		then()
	})
}

func (w *watched) release(t *task, then func()) {
	w.inside--
	w.lock.release(t, then)
}

func TestTheExclusiveLocksOfTheModelExclude(t *testing.T) {
	for _, k := range Kinds[:3] {
		for _, procs := range []int{1, 2, 16} {
			s := Defaults()
			s.Span = 1e6
			r := simulate(s, procs, func(m *machine) lock { return &watched{lock: k.make(m), t: t} })
			require.NotZero(t, r.Acquisitions)
			require.GreaterOrEqual(t, r.PerAcquisition, s.Inside, "one holder at a time")
		}
	}
}

func TestGoroutinesOfTheModelTakeTurnsUnderFIFO(t *testing.T) {
	s := Defaults()
	s.Span = 1e6
	var order []*task
	simulate(s, 4, func(m *machine) lock { return &noted{fifo{queue{m: m}}, &order} })
	const all = 4 * 4
	order = order[all:] // all have arrived by then
	for i := range len(order) - all {
		require.Same(t, order[i], order[i+all])
	}
	require.Greater(t, len(order), 10*all)
}

// noted writes down who acquired a lock.
type noted struct {
	fifo
	order *[]*task
}

func (n *noted) acquire(t *task, then func()) {
	n.fifo.acquire(t, func() { *n.order = append(*n.order, t); then() })
}

func TestALoneGoroutinePaysTwoAtomicOperations(t *testing.T) {
	for _, k := range Kinds {
		s := Defaults()
		s.PerProcessor, s.Turn, s.Rise, s.Span, s.Jitter, s.Every = 1, 0, 0, 1e6, 0, 0
		r := simulate(s, 1, k.make)
		require.InDelta(t, s.Inside+s.Outside+2*s.Atomic, r.PerAcquisition, 1, k.Name)
	}
}

func TestOnlyReadersOfOneCounterTakeTurns(t *testing.T) {
	s := Defaults()
	s.PerProcessor, s.Inside, s.Outside, s.Span, s.Rise, s.Jitter, s.Every = 1, 0, 0, 1e5, 0, 0, 0
	shared, own := simulate(s, 16, Kinds[3].make), simulate(s, 16, Kinds[4].make)
	require.InDelta(t, 2*(s.Atomic+s.Transfer), shared.PerAcquisition, 5)
	require.InDelta(t, 2*s.Atomic/16, own.PerAcquisition, 0.1)
}

func TestNoRhythmMakesAWaiterLoseEachRace(t *testing.T) {
	s := Defaults()
	// A woken waiter asks for the lock just after the goroutine that released it has come back.
	s.PerProcessor, s.Inside, s.Outside, s.Rise = 1, 30, 3000, 3000
	one, four := simulate(s, 1, Kinds[1].make), simulate(s, 4, Kinds[1].make)
	require.Less(t, four.PerAcquisition, one.PerAcquisition/3)
}

func TestHandOffKeepsGoroutinesOnOneProcessor(t *testing.T) {
	s := Defaults()
	s.PerProcessor, s.Inside, s.Outside = 1, 30, 3000
	fair, barging := simulate(s, 4, Kinds[0].make), simulate(s, 4, Kinds[1].make)
	require.Greater(t, fair.PerAcquisition, 2*barging.PerAcquisition)

	s.Rise = 0
	fair = simulate(s, 4, Kinds[0].make)
	require.Less(t, fair.PerAcquisition, s.Outside/2, "idle processors take the next holder at once")
}

func TestAStoppedHolderMakesAllOthersWait(t *testing.T) {
	s := Defaults()
	s.PerProcessor, s.Span = 32, 50e6
	stopped := simulate(s, 2, Kinds[0].make)
	s.Every = 0
	never := simulate(s, 2, Kinds[0].make)
	require.Greater(t, stopped.P99, 1.4*never.P99)
	require.Less(t, stopped.PerAcquisition, 1.05*never.PerAcquisition, "stops are rare")
}

func TestARunCanBeRepeated(t *testing.T) {
	s := Defaults()
	s.Span = 1e6
	require.Equal(t, simulate(s, 4, Kinds[1].make), simulate(s, 4, Kinds[1].make))
}

func TestNobodyHasTheLockBeforeTheContestBegins(t *testing.T) {
	s := Defaults()
	s.Span = 1e6
	var order []*task
	r := simulate(s, 1, func(m *machine) lock { return &noted{fifo{queue{m: m}}, &order} })
	require.Len(t, order, 1+r.Acquisitions, "and the goroutine that holds the others back")
	require.NotContains(t, order[1:], order[0])
	require.GreaterOrEqual(t, r.PerAcquisition, s.Inside+s.Outside, "the first takes turns as well")
}

func TestWaitsAreWeighedByTheirLength(t *testing.T) {
	require.Equal(t, 1000.0, quantileByTime([]float64{1, 1, 1000, 1, 1}, 0.99))
	require.Equal(t, 1.0, quantileByTime([]float64{1, 1, 1, 1000}, 0.001))
	require.Zero(t, quantileByTime(nil, 0.5))
}

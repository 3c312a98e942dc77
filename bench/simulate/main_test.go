package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// defaults are the settings of the command without flags.
func defaults(t *testing.T) settings {
	s, err := parse(nil, new(bytes.Buffer))
	require.NoError(t, err)
	return s
}

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
	for _, k := range kinds[:3] {
		for _, procs := range []int{1, 2, 16} {
			s := defaults(t)
			s.span = 1e6
			r := simulate(s, procs, func(m *machine) lock { return &watched{lock: k.make(m), t: t} })
			require.NotZero(t, r.acquisitions)
			require.GreaterOrEqual(t, r.perAcquisition, s.inside, "one holder at a time")
		}
	}
}

func TestGoroutinesOfTheModelTakeTurnsUnderFIFO(t *testing.T) {
	s := defaults(t)
	s.span = 1e6
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
	for _, k := range kinds {
		s := defaults(t)
		s.perProc, s.turn, s.rise, s.span, s.jitter = 1, 0, 0, 1e6, 0
		r := simulate(s, 1, k.make)
		require.InDelta(t, s.inside+s.outside+2*s.atomic, r.perAcquisition, 1, k.name)
	}
}

func TestOnlyReadersOfOneCounterTakeTurns(t *testing.T) {
	s := defaults(t)
	s.perProc, s.inside, s.outside, s.span, s.rise, s.jitter = 1, 0, 0, 1e5, 0, 0
	shared, own := simulate(s, 16, kinds[3].make), simulate(s, 16, kinds[4].make)
	require.InDelta(t, 2*(s.atomic+s.transfer), shared.perAcquisition, 5)
	require.InDelta(t, 2*s.atomic/16, own.perAcquisition, 0.1)
}

func TestEachNumberOfProcessorsHasALine(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run([]string{"-procs", "1,2", "-span", "1e5"}, &out, &errs))
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	require.Len(t, lines, 5)
	require.Empty(t, errs.String())
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-procs", "0"}, {"-procs", "x"}, {"-per", "0"}, {"-atomic", "0"},
		{"-inside", "-1"}, {"-inside", "NaN"}, {"-jitter", "2"},
		{"more"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(args, &out, &errs), "%q", args)
		require.Contains(t, errs.String(), "simulate: ")
		require.Empty(t, out.String())
	}
	var out bytes.Buffer
	require.Zero(t, run([]string{"-h"}, &out, &out))
	require.Contains(t, out.String(), "-procs")
}

func TestNoRhythmMakesAWaiterLoseEachRace(t *testing.T) {
	s := defaults(t)
	// A woken waiter asks for the lock just after the goroutine that released it has come back.
	s.perProc, s.inside, s.outside, s.rise = 1, 30, 3000, 3000
	one, four := simulate(s, 1, kinds[1].make), simulate(s, 4, kinds[1].make)
	require.Less(t, four.perAcquisition, one.perAcquisition/3)
}

func TestHandOffKeepsGoroutinesOnOneProcessor(t *testing.T) {
	s := defaults(t)
	s.perProc, s.inside, s.outside = 1, 30, 3000
	fair, barging := simulate(s, 4, kinds[0].make), simulate(s, 4, kinds[1].make)
	require.Greater(t, fair.perAcquisition, 2*barging.perAcquisition)

	s.rise = 0
	fair = simulate(s, 4, kinds[0].make)
	require.Less(t, fair.perAcquisition, s.outside/2, "idle processors take the next holder at once")
}

func TestARunCanBeRepeated(t *testing.T) {
	s := defaults(t)
	s.span = 1e6
	require.Equal(t, simulate(s, 4, kinds[1].make), simulate(s, 4, kinds[1].make))
}

func TestNobodyHasTheLockBeforeTheContestBegins(t *testing.T) {
	s := defaults(t)
	s.span = 1e6
	var order []*task
	r := simulate(s, 1, func(m *machine) lock { return &noted{fifo{queue{m: m}}, &order} })
	require.Len(t, order, 1+r.acquisitions, "and the goroutine that holds the others back")
	require.NotContains(t, order[1:], order[0])
	require.GreaterOrEqual(t, r.perAcquisition, s.inside+s.outside, "the first takes turns as well")
}

func TestWaitsAreWeighedByTheirLength(t *testing.T) {
	require.Equal(t, 1000.0, quantileByTime([]float64{1, 1, 1000, 1, 1}, 0.99))
	require.Equal(t, 1.0, quantileByTime([]float64{1, 1, 1, 1000}, 0.001))
	require.Zero(t, quantileByTime(nil, 0.5))
}

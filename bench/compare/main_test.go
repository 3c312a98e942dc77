package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/bench"
)

func TestMain(m *testing.M) {
	if tool := filepath.Base(os.Args[0]); isFake(tool) {
		os.Exit(fake(tool, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// invoke runs the command.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

var short = []string{"-rounds", "2", "-slot", "50us"}

func TestEverySubjectIsMeasured(t *testing.T) {
	code, stdout, stderr := invoke(t, append(short, "-json")...)
	require.Equal(t, exitOK, code, stderr)
	var r Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	ws := workloads()
	require.Len(t, r.Workloads, len(ws))
	targets := 0
	for i, w := range ws {
		require.Equal(t, w.Name, r.Workloads[i].Name)
		require.Len(t, r.Workloads[i].Subjects, len(w.Subjects), w.Name)
		for _, f := range r.Workloads[i].Subjects {
			require.Len(t, f.Rounds, 2, "%s/%s", w.Name, f.Name)
			require.True(t, f.Low <= f.Median && f.Median <= f.High)
		}
		targets += len(w.Targets)
	}
	require.InDelta(t, targets, len(r.Verdicts), 2, "peers without a cost have no verdict")
	for i := range r.Verdicts[1:] {
		require.GreaterOrEqual(t, r.Verdicts[i].distance(), r.Verdicts[i+1].distance(), "worst first")
	}
	require.NotEmpty(t, r.Go)
	require.Positive(t, r.Processors)
}

func TestTargetsNameSubjects(t *testing.T) {
	for _, w := range workloads() {
		for _, target := range w.Targets {
			assert.True(t, w.Has(target.Subject), "%s: %s", w.Name, target.Subject)
			assert.True(t, w.Has(target.Peer), "%s: %s", w.Name, target.Peer)
		}
	}
	known := map[string]bool{}
	for _, w := range bench.Workloads() {
		known[w.Name] = true
	}
	for name := range peers() {
		assert.True(t, known[name], "there are peers for %s, which is no workload", name)
	}
}

func TestTablesAndPageShowTheFigures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := invoke(t, append(short, "-run", "re-entry/", "-page", path)...)
	require.Equal(t, exitOK, code, stderr)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, out := range []string{stdout, string(text)} {
		for _, want := range []string{
			"re-entry", "reentrant.Mutex", "textbook", "1.00", "±", "GOMAXPROCS", "of all processors",
		} {
			assert.Contains(t, out, want)
		}
		assert.NotContains(t, out, "uncontended")
	}
	assert.NotContains(t, string(text), "src=", "the page needs nothing else")
	assert.NotContains(t, string(text), "href=")
}

func TestGrowthIsMeasuredAndDrawn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := invoke(t,
		"-growth", "-rounds", "1", "-slot", "50us", "-page", path, "-run", "goroutines/|1000 waiters/")
	require.Equal(t, exitOK, code, stderr)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{
		"processor time, 1024 goroutines", "memory, 64 goroutines", "hand-over, 1000 waiters",
	} {
		assert.Contains(t, stdout, want)
		assert.Contains(t, string(text), want)
	}
	lines := len(bench.Growth()[0].Subjects)
	assert.Equal(t, 2*lines, strings.Count(string(text), "<polyline"), "two series have several sizes")
}

func TestManyProcessorsAreMeasuredBesideThePrediction(t *testing.T) {
	t.Chdir(t.TempDir())
	code, stdout, stderr := invoke(t, "-many", "-rounds", "1", "-slot", "50us")
	require.Equal(t, exitOK, code, stderr)
	text, err := os.ReadFile("many.html")
	require.NoError(t, err)
	for _, want := range []string{
		"acquisition, 1 processors", "p99 wait, 1 processors", "short section, 1 processors", "read, 1 processors",
		"fair.Mutex, predicted", "reads, rwlock.RWMutex, predicted",
		"FIFO stays where it is with one processor.",
	} {
		assert.Contains(t, stdout, want)
		assert.Contains(t, string(text), want)
	}
}

// manyFigures are two locks with 1 and with all of 16 processors, and their predictions.
func manyFigures(fifo, barging, read float64) []Measured {
	at := func(series string, size int, costs map[string]float64) Measured {
		m := Measured{Name: fmt.Sprint(series, size), Series: series, Size: size, Unit: bench.Nanoseconds}
		for _, name := range slices.Sorted(maps.Keys(costs)) {
			m.Subjects = append(m.Subjects, Figures{Name: name, Median: costs[name]})
		}
		return m
	}
	return []Measured{
		at("acquisition", 1, map[string]float64{"fair.Mutex": 850, "fair.Mutex, predicted": 852}),
		at("acquisition", 16, map[string]float64{"fair.Mutex": fifo, "fair.Mutex, predicted": 831}),
		at("short section", 16, map[string]float64{"fair.Mutex": 2000, "fair.BargingMutex": barging}),
		at("read", 2, map[string]float64{"rwlock.RWMutex.R": 4}),
		at("read", 16, map[string]float64{"rwlock.RWMutex.R": read, "reads, rwlock.RWMutex, predicted": 0.5}),
	}
}

func verdictsOf(ss []Statement) (vs []string) {
	for _, s := range ss {
		vs = append(vs, s.Verdict)
	}
	return vs
}

func TestStatementsOnManyProcessorsAreJudged(t *testing.T) {
	require.Equal(t, []string{"holds", "holds", "holds"}, verdictsOf(statements(manyFigures(800, 300, 0.5))))
	require.Equal(t, []string{"refuted", "refuted", "refuted"}, verdictsOf(statements(manyFigures(400, 2100, 5))))
	few := manyFigures(800, 300, 0.5)[:1]
	require.Equal(t, []string{"not judged", "not judged", "not judged"}, verdictsOf(statements(few)))
	few[0].Size = 16
	require.Equal(t, "not measured", statements(few)[2].Why)
}

func TestFiguresThatPartFromThePredictionComeFirst(t *testing.T) {
	ps := predictions(manyFigures(400, 300, 0.4))
	require.Len(t, ps, 3, "those that are measured and predicted")
	require.Equal(t, "acquisition16", ps[0].Workload)
	require.True(t, ps[0].Parts)
	require.InDelta(t, 400.0/831, ps[0].Ratio, 1e-9)
	require.Equal(t, "rwlock.RWMutex.R", ps[1].Subject)
	require.False(t, ps[1].Parts)
	require.InDelta(t, 0.4/0.5, ps[1].Ratio, 1e-9)
	require.Equal(t, "50.00", Prediction{Ratio: 1}.bar())
	require.Equal(t, "0.00", Prediction{Ratio: 1.0 / 8}.bar())
}

func TestChartPutsCostsOnLogarithmicAxes(t *testing.T) {
	at := func(size int, costs ...float64) Measured {
		m := Measured{Series: "s", Size: size, Unit: bench.Nanoseconds}
		for i, c := range costs {
			m.Subjects = append(m.Subjects, Figures{Name: string(rune('a' + i)), Median: c})
		}
		return m
	}
	cs := charts(Report{Workloads: []Measured{{Name: "alone"}, at(1, 1, 10), at(10, 10, 10), at(100, 100, 10)}})
	require.Len(t, cs, 1)
	require.Equal(t, []Tick{{290, "1.0 ns"}, {145, "10.0 ns"}, {0, "100 ns"}}, cs[0].Rows)
	require.Equal(t, "110.0,290.0 420.0,145.0 730.0,0.0", cs[0].Lines[0].Points)
	require.Equal(t, "110.0,145.0 420.0,145.0 730.0,145.0", cs[0].Lines[1].Points)
}

func TestNamesOfLinesDoNotOverlap(t *testing.T) {
	lines := []Line{{End: 100}, {End: 20}, {End: 22}}
	spread(lines)
	require.Equal(t, []Line{{End: 100}, {End: 20}, {End: 34}}, lines)
}

func TestListMeasuresNothing(t *testing.T) {
	code, stdout, stderr := invoke(t, "-list", "-run", "^uncontended/")
	require.Equal(t, exitOK, code)
	assert.Empty(t, stderr)
	for _, want := range []string{
		"sync.Mutex", "fifomu.Mutex", "sasha-s/go-deadlock.Mutex", "linkdata/deadlock.Mutex", "textbook",
	} {
		assert.Contains(t, stdout, "uncontended/"+want+"\n")
	}
}

func TestPeersOfChosenSubjectsAreMeasured(t *testing.T) {
	_, stdout, _ := invoke(t, "-list", "-run", "^uncontended/spin.MCS$")
	assert.Equal(t, "uncontended/sync.Mutex\nuncontended/spin.MCS\n", stdout)
}

func TestBadFlagsAreNamed(t *testing.T) {
	for _, args := range []string{
		"-nonsense", "-run (", "-rounds -1", "-slot x", "-slot -1s", "-growth -other", "-many -other", "-growth -many",
		"-run nothing-of-this-name", "all",
	} {
		code, stdout, stderr := invoke(t, strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, strings.TrimPrefix(strings.Fields(args)[0], "-"))
		assert.Equal(t, 2, strings.Count(stderr, "\n"), "the error and a hint: %s", stderr)
	}
	code, stdout, stderr := invoke(t, "-h")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "-page")
	assert.Contains(t, stdout, "parking_lot")
	assert.Empty(t, stderr)
}

func TestInterruptedRunPrintsNoFigures(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitInterrupted, run(ctx, []string{"-rounds", "1000", "-run", "re-entry"}, &stdout, &stderr))
	assert.Empty(t, stdout.String())
	assert.Contains(t, stderr.String(), "interrupted")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFiguresThatCannotBeWrittenAreAFailure(t *testing.T) {
	var stderr bytes.Buffer
	args := append(short, "-run", "singleton")
	assert.Equal(t, exitFailed, run(t.Context(), args, full{}, &stderr))
	assert.Contains(t, stderr.String(), "no space left")
	code, _, text := invoke(t, append(args, "-page", filepath.Join(t.TempDir(), "none", "page.html"))...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, text, "page.html")
}

func TestBusyMachineIsStated(t *testing.T) {
	r := Report{Busy: bench.Busy{Known: true, Others: 0.4, TooBig: true}}
	assert.Contains(t, trust(r.Busy), "TOO BUSY TO TRUST: others took 40% of all processors")
	r.Busy = bench.Busy{Known: true, Others: 0.01}
	assert.Equal(t, "Others took 1.0% of all processors during the run.", trust(r.Busy))
	assert.Contains(t, trust(bench.Busy{}), "does not tell")
}

func TestQuartilesOfRounds(t *testing.T) {
	low, median, high := quartiles([]float64{5, 1, 4, 2, 3})
	assert.Equal(t, [...]float64{2, 3, 4}, [...]float64{low, median, high})
	low, median, high = quartiles([]float64{7})
	assert.Equal(t, [...]float64{7, 7, 7}, [...]float64{low, median, high})
	_, median, _ = quartiles([]float64{1, 2})
	assert.Equal(t, 1.5, median)
	assert.InDelta(t, 0.5, Figures{Median: 2, Low: 1, High: 2.5}.spread(), 1e-9)
}

func TestSizeFillsTheSlot(t *testing.T) {
	did := 0
	n, err := size(func(n int) (float64, error) {
		did += n
		time.Sleep(time.Duration(n) * 100 * time.Microsecond)
		return 0, nil
	}, 20*time.Millisecond)
	require.NoError(t, err)
	assert.True(t, 10 <= n && n <= 200, "%d operations of at least 0.1 ms for 20 ms", n)
	_, err = size(func(int) (float64, error) { return 0, bench.ErrExclusion }, time.Second)
	assert.ErrorIs(t, err, bench.ErrExclusion)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAQuickRunPrintsFiguresOfAllLocks(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-quick", "-seconds", "0.3", "-goroutines", "8"}, &stdout, &stderr)
	require.Equal(t, exitOK, code, stderr.String())
	out := stdout.String()
	for line := range strings.Lines(out) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 110, "with the line's end: %s", line)
	}
	for _, l := range bench.Locks() {
		row := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(l.Name) + ` .*$`).FindString(out)
		require.NotEmpty(t, row, "%s has a row in:\n%s", l.Name, out)
		f := strings.Fields(row)
		require.Len(t, f, len(columns))
		for _, i := range []int{1, 2, 3, 4} {
			x, err := strconv.ParseFloat(f[i], 64)
			require.NoError(t, err)
			assert.Positive(t, x, "%s of %s", columns[i], l.Name)
		}
		assert.Regexp(t, `^\d+%$`, f[5])
		for _, i := range []int{6, 7, 8} {
			_, err := time.ParseDuration(f[i])
			require.NoError(t, err)
		}
		jain, err := strconv.ParseFloat(f[9], 64)
		require.NoError(t, err)
		assert.True(t, 0 < jain && jain <= 1)
		_, err = strconv.Atoi(f[10])
		require.NoError(t, err)
	}
	assert.Contains(t, out, "What FIFO costs here: ")
	assert.Contains(t, out, "What it buys: ")
	assert.Contains(t, stderr.String(), "round 2 of 2: chan", "progress goes to standard error")
}

func TestHelpIsNoError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitOK, run(t.Context(), []string{"-h"}, &stdout, &stderr))
	for _, name := range []string{"-seconds", "-quick", "-goroutines", "-inside", "-outside"} {
		assert.Contains(t, stdout.String(), name)
	}
	assert.Empty(t, stderr.String())
}

func TestBadFlagsAreNamedAndExitWithTwo(t *testing.T) {
	for _, args := range []string{
		"-nonsense", "-seconds x", "-seconds 0", "-seconds NaN", "-seconds -1", "-seconds 1e9",
		"-goroutines 1", "-goroutines x", "-inside -1ns", "-inside 300", "-outside 2s", "fair.Mutex",
	} {
		t.Run(args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			words := strings.Fields(args)
			assert.Equal(t, exitUsage, run(t.Context(), words, &stdout, &stderr))
			assert.Empty(t, stdout.String())
			assert.Contains(t, stderr.String(), strings.TrimPrefix(words[0], "-"))
			assert.Equal(t, 2, strings.Count(stderr.String(), "\n"), "the error and a hint: %s", stderr.String())
		})
	}
}

func TestAnInterruptedRunPrintsNoFigures(t *testing.T) {
	for name, after := range map[string]time.Duration{"before": 0, "during": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if after == 0 {
				cancel()
			}
			defer time.AfterFunc(after, cancel).Stop()
			var stdout, stderr bytes.Buffer
			start := time.Now()
			assert.Equal(t, exitInterrupted, run(ctx, []string{"-seconds", "600"}, &stdout, &stderr))
			assert.Less(t, time.Since(start), time.Minute)
			assert.Empty(t, stdout.String())
			assert.Contains(t, stderr.String(), "interrupted")
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFiguresThatCannotBeWrittenAreAFailure(t *testing.T) {
	var stderr bytes.Buffer
	args := []string{"-quick", "-seconds", "0.05", "-goroutines", "2"}
	assert.Equal(t, exitFailed, run(t.Context(), args, full{}, &stderr))
	assert.Contains(t, stderr.String(), "no space left")
}

func TestSentencesFollowTheFigures(t *testing.T) {
	of := func(name string, contended float64, wait time.Duration, waiting, jain float64, streak int) *row {
		r := &row{
			lock: bench.Lock{Name: name}, alone: []float64{10}, contended: []float64{contended},
			waiting: []float64{waiting}, jain: []float64{jain}, streak: streak,
		}
		r.waits.Add(wait)
		return r
	}
	told := func(f, r *row) string { return strings.Join(sentences(f, r), "\n") }

	// Each duration has a bucket to itself, so that it comes out exactly.
	assert.Equal(t, "What FIFO costs here: a contended acquisition of F takes 300 ns more than one of R (1.50 x), "+
		"an uncontended one 10.0 instead of 10.0 ns (1.00 x).\n"+
		"What it buys: a median wait of 20ns instead of 31ns, a p99 wait of 20ns instead of 31ns, "+
		"a longest wait of 20ns instead of 31ns, a Jain index of 1.00 instead of 0.80 "+
		"and a longest streak past others of 1 instead of 4000.",
		told(of("F", 900, 20, 0.9, 1, 1), of("R", 600, 31, 0.9, 0.8, 4000)))

	assert.Equal(t, "What FIFO costs here: a contended acquisition of F takes 100 ns less than one of R (0.83 x), "+
		"an uncontended one 10.0 instead of 10.0 ns (1.00 x).\n"+
		"What it buys: a longest streak past others of 8 instead of 9.\n"+
		"What is worse with it: a median wait of 31ns instead of 20ns, a p99 wait of 31ns instead of 20ns, "+
		"a longest wait of 31ns instead of 20ns and a share of time spent waiting of 98% instead of 50%.",
		told(of("F", 500, 31, 0.98, 0.9, 8), of("R", 600, 20, 0.5, 0.9, 9)))

	text := told(of("F", 500, 0, 0.5, 1, 1), of("R", 600, 0, 0.5, 1, 1))
	assert.True(t, strings.HasSuffix(text, "What it buys: nothing in this run."), text)
}

func TestAHogDoesNotMakeWaitsLookShort(t *testing.T) {
	hogged, even := &row{}, &row{}
	for range 1_000_000 {
		hogged.waits.Add(61)
		even.waits.Add(2_360 * time.Microsecond)
	}
	for range 63 {
		hogged.waits.Add(170 * time.Millisecond)
	}
	for _, r := range []*row{hogged, even} {
		r.alone, r.contended, r.streak = []float64{10}, []float64{600}, 1
		r.waiting, r.jain = []float64{0.98}, []float64{1}
	}
	text := strings.Join(sentences(even, hogged), "\n")
	assert.Contains(t, text, "What it buys: a median wait of 2.36ms instead of 170ms")
	assert.NotContains(t, text, "worse")
}

func TestMedianOfAnEvenNumberIsInBetween(t *testing.T) {
	assert.Equal(t, 2.0, median([]float64{3, 1, 2}))
	assert.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	assert.Equal(t, 7.0, median([]float64{7}))
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 7: "7ns", 41: "41ns", 1234: "1.23µs", 95_620: "95.6µs",
		1_101_000: "1.1ms", 71_437_000: "71.4ms", 2_345e6: "2.35s",
	} {
		assert.Equal(t, want, short(d))
	}
}

func TestRatiosKeepTwoDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0.00051: "0.00051", 0.05: "0.05", 0.0995: "0.10", 0.1: "0.10", 1: "1.00", 9.994: "9.99", 9.996: "10", 123.4: "123",
	} {
		assert.Equal(t, want, times(x))
	}
}

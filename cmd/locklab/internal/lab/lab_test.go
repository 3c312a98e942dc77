package lab

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNumbersAreWrittenAsReadersExpectThem(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		v    float64
		want string
	}{
		{Count, 0, "0"}, {Count, math.Copysign(0, -1), "0"}, {Count, 7, "7"}, {Count, -7, "-7"},
		{Count, 0.123456, "0.12"},
		{Count, 99_994, "99994"}, {Count, 99_995, "100 k"}, {Count, 999_499, "999 k"}, {Count, 999_500,
			"1 M"}, {Count, 1.5e9, "1.5 G"},
		{Count, -2e6, "-2 M"}, {Count, 12.345, "12.3"}, {Count, 999.7, "1000"},
		{Nanos, 0, "0 ns"}, {Nanos, 999, "999 ns"}, {Nanos, 1000, "1 µs"}, {Nanos, 999_499,
			"999 µs"}, {Nanos, 999_500, "1 ms"},
		{Nanos, 1.5e9, "1.5 s"}, {Nanos, -1500, "-1.5 µs"},
		{Percent, 0, "0 %"}, {Percent, 0.5, "50 %"}, {Percent, 1, "100 %"}, {Percent, 0.3333,
			"33.3 %"}, {Percent, 0.0001, "0.01 %"},
		{Rate, 12_345_678, "12.3 M/s"}, {Rate, 0, "0/s"},
		{Decimals, 1, "1.00"}, {Decimals, math.Copysign(0, -1), "0.00"},
	} {
		assert.Equal(t, c.want, c.unit.Format(c.v), "%v in %q", c.v, c.unit)
	}
	for _, unit := range []Unit{Count, Nanos, Percent, Rate, Decimals} {
		for _, v := range []float64{math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
			math.Inf(1), math.NaN()} {
			assert.NotEmpty(t, unit.Format(v))
		}
	}
}

func TestObservationsAreFilledIntoTheText(t *testing.T) {
	got, err := expand(T(`{{n .d}}, {{n .i}}, {{n .u}}, {{n .f}}, {{times .none}}, `+
		`{{times .one}}, {{times .two}}, {{times .i}}, {{percent .f}}, {{index .f}}`, `{{times .i}}`),
		map[string]any{"d": 1500 * time.Microsecond, "i": 100_000, "u": uint64(3), "f": 0.5, "none": 0,
			"one": 1, "two": int64(2)})
	require.NoError(t, err)
	require.Equal(t, Text{"1.5 ms, 100 k, 3, 0.5, never, once, twice, 100000 times, 50 %, 0.50", "100000 次"}, got)
	for text, observed := range map[string]map[string]any{
		"{{.missing}}": nil,
		"{{n .text}}":  {"text": "x"},
		"{{":           nil,
		"{{nothing}}":  nil,
	} {
		_, err := expand(Same(text), observed)
		require.ErrorContains(t, err, "the text of the scenario", text)
	}
}

func FuzzDurationsAreShort(f *testing.F) {
	for _, d := range []int64{0, 1, -1, 999, 1000, 999_999, math.MaxInt64, math.MinInt64} {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, d int64) {
		text := Duration(time.Duration(d))
		require.Regexp(t, `^-?\d+(\.\d{1,2})? (ns|µs|ms|s)$`, text)
		require.LessOrEqual(t, len(text), len("-9223372036 s"))
	})
}

// ran runs f as a scenario.
func ran(t *testing.T, f func(ctx context.Context, l *Lab) error) *Result {
	t.Helper()
	return Run(t.Context(), &Scenario{Name: "test", Run: f, Found: Same("found")}, Options{Limit: 10 * time.Second})
}

func TestWhatAScenarioChecksAndNotes(t *testing.T) {
	r := ran(t, func(_ context.Context, l *Lab) error {
		for range 3 {
			l.Check(true, Same("said once"))
		}
		l.Equal(1, 1, Same("equal"))
		l.Is(context.Canceled, context.Canceled, Same("is"))
		l.Observe("key", "value")
		l.Chart(Chart{Title: Same("chart")})
		l.Table(Table{Title: Same("table")})
		l.Quote(Quote{Title: Same("quote")})
		l.Until(Same("it is so"), func() bool { return true })
		return nil
	})
	require.True(t, r.OK, r.Error.EN)
	require.Equal(t, Same("found"), r.Found)
	require.Equal(t, []Check{{Text: Same("said once"), OK: true}, {Text: Same("equal"), OK: true},
		{Text: Same("is"), OK: true}}, r.Checks)
	require.Equal(t, map[string]any{"key": "value"}, r.Observations)
	require.Len(t, r.Charts, 1)
	require.Len(t, r.Tables, 1)
	require.Len(t, r.Quotes, 1)
}

func TestAContradictionStaysWhateverElseIsChecked(t *testing.T) {
	r := ran(t, func(_ context.Context, l *Lab) error {
		l.Check(true, Same("now and then"))
		l.Check(false, Same("now and then"))
		l.Check(true, Same("now and then"))
		l.Equal(1, 2, Same("equal"))
		l.Is(context.Canceled, nil, Same("is"))
		return nil
	})
	require.False(t, r.OK)
	require.Empty(t, r.Error.EN)
	require.Equal(t, []Check{{Text: Same("now and then"), OK: true}, {Text: Same("now and then")},
		{Text: Same("equal"), Got: Text{"want 1, got 2", "应为 1，实为 2"}},
		{Text: Same("is"), Got: Text{"want context canceled, got <nil>", "应为 context canceled，实为 <nil>"}}}, r.Checks)
}

func TestAScenarioThatBreaksIsTold(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		run  func(ctx context.Context, l *Lab) error
		want string
	}{
		"an error": {func(context.Context, *Lab) error { return boom }, "boom"},
		"must":     {func(_ context.Context, l *Lab) error { l.Must(nil); l.Must(boom); panic("unreachable") }, "boom"},
		"a panic":  {func(context.Context, *Lab) error { panic("ouch") }, "panic: ouch"},
		"an exit":  {func(context.Context, *Lab) error { runtime.Goexit(); return nil }, "runtime.Goexit"},
		"a lane": {func(_ context.Context, l *Lab) error {
			tl := l.Timeline(Same("t"), Same("d"))
			tl.Go(Same("Ann"), func(context.Context, *Lane) error { return boom })
			tl.Go(Same("Bob"), func(ctx context.Context, _ *Lane) error { <-ctx.Done(); return nil })
			tl.Wait()
			return nil
		}, "Ann: boom"},
		"left lanes": {func(_ context.Context, l *Lab) error {
			l.Timeline(Same("t"), Same("d")).Go(Same("Ann"), func(ctx context.Context, _ *Lane) error {
				<-ctx.Done()
				return nil
			})
			return boom // The lane is not left behind.
		}, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ran(t, c.run)
			require.False(t, r.OK)
			require.Contains(t, r.Error.EN, c.want)
			require.Empty(t, r.Found.EN, "nothing is claimed of it")
		})
	}
	r := Run(t.Context(), &Scenario{Found: Same("{{.missing}}"),
		Run: func(context.Context, *Lab) error { return nil }}, Options{})
	require.False(t, r.OK)
	require.Contains(t, r.Error.EN, "missing")
}

func TestRunningOutOfTimeIsNoContradiction(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(ctx context.Context, l *Lab)
		late bool
	}{
		"a check after the limit": {func(ctx context.Context, l *Lab) {
			<-ctx.Done()
			l.Check(false, Same("late"))
		}, true},
		"an endless wait": {func(_ context.Context, l *Lab) {
			l.Until(Same("pigs fly"), func() bool { return false })
		}, true},
		"a check before": {func(ctx context.Context, l *Lab) { l.Check(false, Same("wrong")); <-ctx.Done() }, false},
		"a success":      {func(ctx context.Context, _ *Lab) { <-ctx.Done() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := Run(t.Context(), &Scenario{Run: func(ctx context.Context, l *Lab) error {
					c.run(ctx, l)
					return nil
				}}, Options{Limit: time.Second})
				require.Equal(t, c.late, r.OutOfTime)
				require.Equal(t, name == "a success", r.OK)
			})
		})
	}
}

func TestWaitingForNothingEndsWithTheRun(t *testing.T) {
	r := Run(t.Context(), &Scenario{Run: func(_ context.Context, l *Lab) error {
		l.Until(Same("pigs fly"), func() bool { return false })
		return nil
	}}, Options{Limit: 20 * time.Millisecond})
	require.False(t, r.OK)
	require.Contains(t, r.Error.EN, "waiting until pigs fly")
	require.Contains(t, r.Error.EN, context.DeadlineExceeded.Error())
}

func TestChanceFollowsFromTheSeedAndTheName(t *testing.T) {
	draw := func(name string, seed uint64) (n uint64) {
		Run(t.Context(), &Scenario{Name: name,
			Run: func(_ context.Context, l *Lab) error { n = l.Rand.Uint64(); return nil }}, Options{Seed: seed})
		return n
	}
	assert.Equal(t, draw("a", 1), draw("a", 1))
	assert.NotEqual(t, draw("a", 1), draw("a", 2))
	assert.NotEqual(t, draw("a", 1), draw("b", 1))
	assert.Equal(t, 1, Pick(&Lab{Quick: true}, 1, 2))
	assert.Equal(t, 2, Pick(&Lab{}, 1, 2))
}

// told is the states of a lane, without times.
func told(lane *Lane) (all []string) {
	for _, s := range lane.Spans {
		all = append(all, string(s.State)+": "+s.Label.EN)
	}
	for _, m := range lane.Marks {
		all = append(all, "mark: "+m.Label.EN)
	}
	return all
}

func TestATimelineShowsWhatTheLocksDo(t *testing.T) {
	const pause = 3 * time.Millisecond
	r := ran(t, func(_ context.Context, l *Lab) error {
		tl := l.Timeline(Same("title"), Same("desc"))
		var b rwlock.RWMutex
		mu, rw := tl.Wrap(Same("A"), new(reentrant.Mutex)), tl.WrapReadWrite(Same("B"), &b)
		limited, cancel := context.WithCancel(t.Context())
		defer cancel()
		var held, gaveUp sync.WaitGroup
		held.Add(1)
		gaveUp.Add(1)
		tl.Go(Same("Ann"), func(ctx context.Context, me *Lane) error {
			me.Work(pause)
			l.Must(mu.LockContext(ctx))
			me.Work(pause)
			l.Must(rw.ReadLocker().LockContext(ctx))
			held.Done()
			l.Until(Same("Bob waits"), b.HasQueued)
			me.Work(pause)
			cancel()
			gaveUp.Wait()
			me.Work(pause)
			l.Must(rw.ReadLocker().UnlockContext(ctx))
			l.Must(mu.UnlockContext(ctx))
			me.Is(Waiting, Same("dreams"), func() { me.Work(pause) })
			me.Mark(Same("number %d"), 1)
			return nil
		})
		tl.Go(Same("Bob"), func(ctx context.Context, me *Lane) error {
			held.Wait()
			ok, err := mu.TryLockContext(ctx)
			l.Check(!ok && err == nil, Same("it is taken"))
			l.Is(context.Canceled, rw.WriteLocker().LockContext(limited), Same("in vain"))
			gaveUp.Done()
			l.Must(rw.ReadLocker().LockContext(ctx))
			me.Work(pause)
			return rw.ReadLocker().UnlockContext(ctx)
		})
		tl.Wait()
		return nil
	})
	require.True(t, r.OK, "%s %v", r.Error, r.Checks)
	tl := r.Timelines[0]
	require.Equal(t, []string{"running: works", "exclusive: has A", "exclusive: has A and reads B",
		"running: works", "waiting: dreams", "running: works", "mark: number 1"},
		merged(told(tl.Lanes[0])))
	require.Equal(t, []string{"running: works", "waiting: waits to write B", "running: works",
		"shared: reads B", "running: works",
		"mark: finds A taken", "mark: stops waiting for B"}, merged(told(tl.Lanes[1])))
	for _, lane := range tl.Lanes {
		end := time.Duration(0)
		for _, s := range lane.Spans {
			require.GreaterOrEqual(t, s.From, end)
			require.Positive(t, s.Length())
			end = s.To
		}
		require.LessOrEqual(t, end, tl.Length)
	}
}

// merged leaves out moments between two changes, which may be there or not.
func merged(all []string) (kept []string) {
	for i, s := range all {
		free := strings.Contains(s, "waits for A") || strings.Contains(s, "waits to read B")
		if free || s == "exclusive: has A" && i > 0 && strings.HasSuffix(all[i-1], "reads B") {
			continue
		}
		if n := len(kept); n > 0 && kept[n-1] == s {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

func TestSpansTooShortToSeeAreLeftOut(t *testing.T) {
	ms := time.Millisecond
	tl := &Timeline{Lanes: []*Lane{{Spans: []Span{
		{Running, 0, 10 * ms, Same("works")}, {Waiting, 10 * ms, 10*ms + 1, Same("waits")}, {Running, 10*ms + 1,
			500 * ms, Same("works")},
		{Exclusive, 500 * ms, 500 * ms, Same("no time")}, {Waiting, 500 * ms, 700 * ms, Same("waits")},
		{Exclusive, 700 * ms, 700*ms + 1, Same("has it")},
	}, Marks: []Mark{{1000 * ms, Same("late")}}}, {}}}
	tl.seal()
	require.Equal(t, 1000*ms, tl.Length)
	require.Equal(t, []Span{{Running, 0, 500 * ms, Same("works")}, {Waiting, 500 * ms, 700 * ms, Same("waits")},
		{Exclusive, 700 * ms, 700*ms + 1, Same("has it")}}, tl.Lanes[0].Spans)
	require.Empty(t, tl.Lanes[1].Spans)
	require.NotNil(t, tl.Lanes[1].Spans, "JSON has an empty list")
}

package otel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	lockotel "github.com/jucgo/locks/record/otel"
	"github.com/jucgo/locks/reentrant"
)

var bg = context.Background()

func nothing(context.Context) error { return nil }

// telemetry is an instrumented Recorder whose telemetry stays in this process.
type telemetry struct {
	*record.Recorder
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer // of the program
}

func instrumented(t testing.TB) *telemetry { return instrumentedFrom(t, 0) }

// instrumentedFrom makes spans of at least minSpan.
func instrumentedFrom(t testing.TB, minSpan time.Duration) *telemetry {
	t.Helper()
	x := &telemetry{record.New(record.Options{}), sdkmetric.NewManualReader(), tracetest.NewSpanRecorder(), nil}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(x.spans))
	x.tracer = tracers.Tracer("program")
	require.NoError(t, lockotel.Instrument(x.Recorder, lockotel.Options{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(x.reader)),
		TracerProvider: tracers,
		MinSpan:        minSpan,
	}))
	return x
}

// request starts the span of a request, for a new owner.
func (x *telemetry) request() (context.Context, trace.Span) {
	return x.tracer.Start(locks.WithOwner(bg, locks.NewOwner()), "request")
}

// span returns the only ended span with this name.
func (x *telemetry) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range x.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "spans %q", name)
	return found[0]
}

// requireChild ends the test unless child is a child of parent.
func requireChild(t *testing.T, parent trace.SpanContext, child sdktrace.ReadOnlySpan) {
	t.Helper()
	require.Equal(t, parent.TraceID(), child.SpanContext().TraceID())
	require.Equal(t, parent.SpanID(), child.Parent().SpanID())
}

func TestWaitAndHoldAreTheCallersChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		l := x.Wrap("accounts", new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		ctx, request := x.request()
		began := time.Now()
		done := make(chan error)
		go func() { done <- l.LockContext(ctx) }()
		time.Sleep(time.Second)
		require.NoError(t, l.UnlockContext(bg))
		require.NoError(t, <-done)
		time.Sleep(2 * time.Second)
		require.NoError(t, l.UnlockContext(ctx))

		require.Len(t, x.spans.Ended(), 2, "none of the call without a span")
		wait, hold := x.span(t, "wait for accounts"), x.span(t, "hold accounts")
		requireChild(t, request.SpanContext(), wait)
		requireChild(t, request.SpanContext(), hold)
		require.True(t, began.Equal(wait.StartTime()))
		require.Equal(t, time.Second, wait.EndTime().Sub(wait.StartTime()))
		require.True(t, wait.EndTime().Equal(hold.StartTime()))
		require.Equal(t, 2*time.Second, hold.EndTime().Sub(hold.StartTime()))
		require.Contains(t, hold.Attributes(), attribute.String("lock.name", "accounts"))
		require.Equal(t, codes.Unset, hold.Status().Code)
	})
}

func TestASectionsSpansAreItsHoldsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		l, inner := x.Wrap("accounts", new(fair.Mutex)), x.Wrap("log", new(fair.Mutex))
		ctx, request := x.request()
		require.NoError(t, lockotel.Do(ctx, l, func(ctx context.Context) error {
			_, work := x.tracer.Start(ctx, "work")
			time.Sleep(time.Second)
			work.End()
			return locks.Do(ctx, inner, nothing)
		}))
		hold := x.span(t, "hold accounts")
		requireChild(t, request.SpanContext(), hold)
		require.Equal(t, time.Second, hold.EndTime().Sub(hold.StartTime()))
		requireChild(t, request.SpanContext(), x.span(t, "wait for accounts"))
		for _, name := range []string{"work", "wait for log", "hold log"} {
			requireChild(t, hold.SpanContext(), x.span(t, name))
		}
	})
}

func TestAReentryHasNoHoldOfItsOwn(t *testing.T) {
	x := instrumented(t)
	l := x.Wrap("accounts", new(reentrant.Mutex))
	ctx, _ := x.request()
	require.NoError(t, lockotel.Do(ctx, l, func(ctx context.Context) error {
		return lockotel.Do(ctx, l, func(ctx context.Context) error {
			_, work := x.tracer.Start(ctx, "work")
			work.End()
			return nil
		})
	}))
	requireChild(t, x.span(t, "hold accounts").SpanContext(), x.span(t, "work"))
}

func TestASectionOverSeveralLocksEndsEachHold(t *testing.T) {
	x := instrumented(t)
	ctx, request := x.request()
	both := pair{x.Wrap("a", new(fair.Mutex)), x.Wrap("b", new(fair.Mutex))}
	require.NoError(t, lockotel.Do(ctx, both, nothing))
	requireChild(t, request.SpanContext(), x.span(t, "hold a"))
	requireChild(t, request.SpanContext(), x.span(t, "hold b"))
}

// pair acquires two locks.
type pair struct{ a, b locks.Locker }

func (p pair) LockContext(ctx context.Context) error {
	return errors.Join(p.a.LockContext(ctx), p.b.LockContext(ctx))
}

func (p pair) UnlockContext(ctx context.Context) error {
	return errors.Join(p.b.UnlockContext(ctx), p.a.UnlockContext(ctx))
}

func TestATryHasAHoldAndNoWait(t *testing.T) {
	x := instrumented(t)
	l := x.Wrap("accounts", new(fair.Mutex))
	ctx, _ := x.request()
	ran, err := lockotel.TryDo(ctx, l, func(ctx context.Context) error {
		ran, err := lockotel.TryDo(ctx, l, nothing)
		require.False(t, ran)
		return err
	})
	require.NoError(t, err)
	require.True(t, ran)
	x.span(t, "hold accounts")
	require.Len(t, x.spans.Ended(), 1)
}

// lossy is a lock whose lease is lost when lost is closed.
type lossy struct {
	locks.TryLocker
	lost chan struct{}
}

func (l *lossy) Hold(context.Context) (locks.Hold, error) { return l, nil }
func (l *lossy) Lost() <-chan struct{}                    { return l.lost }
func (l *lossy) Token() uint64                            { return 0 }
func (l *lossy) Deadline() (time.Time, bool)              { return time.Time{}, false }
func (l *lossy) Extend(context.Context, time.Duration) error {
	return l.Err()
}

func (l *lossy) Err() error {
	select {
	case <-l.lost:
		return locks.ErrLost
	default:
		return nil
	}
}

func (l *lossy) UnlockContext(ctx context.Context) error {
	return errors.Join(l.Err(), l.TryLocker.UnlockContext(ctx))
}

func requireLost(t *testing.T, hold sdktrace.ReadOnlySpan, after time.Duration) {
	t.Helper()
	require.Equal(t, codes.Error, hold.Status().Code)
	require.Len(t, hold.Events(), 1)
	require.Equal(t, "lost", hold.Events()[0].Name)
	require.Equal(t, after, hold.Events()[0].Time.Sub(hold.StartTime()))
	require.Equal(t, 3*time.Second, hold.EndTime().Sub(hold.StartTime()))
}

func TestInDoALossIsATimedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		inner := &lossy{new(fair.Mutex), make(chan struct{})}
		ctx, _ := x.request()
		require.ErrorIs(t, lockotel.Do(ctx, x.Wrap("report", inner), func(ctx context.Context) error {
			time.Sleep(time.Second)
			close(inner.lost)
			<-ctx.Done()
			time.Sleep(2 * time.Second)
			return nil
		}), locks.ErrLost)
		requireLost(t, x.span(t, "hold report"), time.Second)
	})
}

func TestAnInnerLockGetsNoLossEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		outer := &lossy{new(fair.Mutex), make(chan struct{})}
		ctx, _ := x.request()
		require.ErrorIs(t, locks.Do(ctx, outer, func(ctx context.Context) error {
			return lockotel.Do(ctx, x.Wrap("inside", new(fair.Mutex)), func(ctx context.Context) error {
				close(outer.lost)
				<-ctx.Done()
				time.Sleep(time.Second) // for the goroutine that looks at the cause
				return nil
			})
		}), locks.ErrLost)
		require.Empty(t, x.span(t, "hold inside").Events())
	})
}

func TestWithoutDoUnlockReportsTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		inner := &lossy{new(fair.Mutex), make(chan struct{})}
		l := x.Wrap("report", inner)
		ctx, _ := x.request()
		require.NoError(t, l.LockContext(ctx))
		close(inner.lost)
		time.Sleep(3 * time.Second)
		require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
		requireLost(t, x.span(t, "hold report"), 3*time.Second)
	})
}

func TestAnUnwrappedLockHasASectionWithoutSpans(t *testing.T) {
	x := instrumented(t)
	ctx, request := x.request()
	require.NoError(t, lockotel.Do(ctx, new(fair.Mutex), func(ctx context.Context) error {
		require.Equal(t, request, trace.SpanFromContext(ctx))
		return nil
	}))
	require.Empty(t, x.spans.Ended())
	require.ErrorIs(t, lockotel.Do(nil, new(fair.Mutex), nothing), locks.ErrNilContext)
	require.Error(t, lockotel.Do(ctx, new(fair.Mutex), nil))
	_, err := lockotel.TryDo(nil, new(fair.Mutex), nothing)
	require.ErrorIs(t, err, locks.ErrNilContext)
}

func TestAFailedWaitsSpanHasItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		l := x.Wrap("accounts", new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		ctx, _ := x.request()
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		wait := x.span(t, "wait for accounts")
		require.Equal(t, codes.Error, wait.Status().Code)
		require.Equal(t, time.Second, wait.EndTime().Sub(wait.StartTime()))
		require.NoError(t, l.UnlockContext(bg))
	})
}

// An exporter with OTLP cannot encode a text that is not UTF-8, and loses all spans that it sends
// in the same request.
func TestASpanHasNoTextThatIsNotUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		inner := &odd{Mutex: new(fair.Mutex)}
		l := x.Wrap("caf\xe9", inner)
		ctx, _ := x.request()
		require.NoError(t, l.LockContext(ctx))
		inner.err = errors.New("caf\xe9 is closed")
		require.Error(t, l.LockContext(ctx))
		require.NoError(t, l.UnlockContext(ctx))
		require.Len(t, x.spans.Ended(), 3)
		for _, s := range x.spans.Ended() {
			require.Contains(t, s.Attributes(), attribute.String("lock.name", lockotel.Other))
			for _, text := range []string{s.Name(), s.Status().Description} {
				require.True(t, utf8.ValidString(text), "%q", text)
			}
		}
		require.Equal(t, "caf\uFFFD is closed", x.spans.Ended()[1].Status().Description)
	})
}

// odd is a lock whose acquisitions fail with err, if it is not nil.
type odd struct {
	*fair.Mutex
	err error
}

func (l *odd) LockContext(ctx context.Context) error {
	if l.err != nil {
		return l.err
	}
	return l.Mutex.LockContext(ctx)
}

// collect returns the measurements by name, and for each the values by their attributes. A
// histogram has the count and the sum of its values.
func (x *telemetry) collect(t testing.TB) map[string]map[string]any {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, x.reader.Collect(bg, &all))
	require.Len(t, all.ScopeMetrics, 1)
	found := map[string]map[string]any{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		values := map[string]any{}
		found[m.Name] = values
		key := func(s attribute.Set) string { return s.Encoded(attribute.DefaultEncoder()) }
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				values[key(p.Attributes)] = []float64{float64(p.Count), p.Sum}
			}
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				values[key(p.Attributes)] = p.Value
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				values[key(p.Attributes)] = p.Value
			}
		default:
			t.Fatalf("%s is a %T", m.Name, data)
		}
	}
	return found
}

func TestEveryEventIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumented(t)
		l := x.Wrap("l", new(reentrant.Mutex))
		a, b := locks.WithOwner(bg, locks.NewOwner()), locks.WithOwner(bg, locks.NewOwner())
		require.NoError(t, l.LockContext(a))
		ok, err := l.TryLockContext(b)
		require.NoError(t, err)
		require.False(t, ok)
		short, cancel := context.WithTimeout(b, time.Second)
		defer cancel()
		require.ErrorIs(t, l.LockContext(short), context.DeadlineExceeded)
		ended, cancel := context.WithCancel(b)
		cancel()
		require.ErrorIs(t, l.LockContext(ended), context.Canceled)
		require.ErrorIs(t, l.LockContext(nil), locks.ErrNilContext)
		require.ErrorIs(t, l.UnlockContext(b), locks.ErrNotHeld)
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, l.LockContext(b))
		done := make(chan error)
		go func() { done <- l.LockContext(a) }()
		time.Sleep(time.Minute)

		lost := &lossy{new(fair.Mutex), make(chan struct{})}
		close(lost.lost)
		r := x.Wrap("r", lost)
		require.NoError(t, r.LockContext(a))
		require.ErrorIs(t, r.UnlockContext(a), locks.ErrLost)

		one := func(l, r any) map[string]any { return map[string]any{"lock.name=l": l, "lock.name=r": r} }
		require.Equal(t, map[string]map[string]any{
			"locks.wait.duration": one([]float64{5, 1}, []float64{1, 0}),
			"locks.hold.duration": {"lock.name=l": []float64{1, 1}},
			"locks.acquisitions":  one(int64(2), int64(1)),
			"locks.acquisition.failures": {
				"error.type=busy,lock.name=l": int64(1), "error.type=busy,lock.name=r": int64(0),
				"error.type=timeout,lock.name=l": int64(1), "error.type=timeout,lock.name=r": int64(0),
				"error.type=cancelled,lock.name=l": int64(1), "error.type=cancelled,lock.name=r": int64(0),
				"error.type=_OTHER,lock.name=l": int64(1), "error.type=_OTHER,lock.name=r": int64(0),
			},
			"locks.lost":            one(int64(0), int64(1)),
			"locks.unlock.failures": one(int64(1), int64(0)),
			"locks.waiters":         one(int64(1), int64(0)),
			"locks.holders":         one(int64(1), int64(0)),
			"locks.oldest_hold.age": one(60.0, 0.0),
		}, x.collect(t))
		require.NoError(t, l.UnlockContext(b))
		require.NoError(t, <-done)
		require.NoError(t, l.UnlockContext(a))
	})
}

// broken is a MeterProvider that refuses an instrument.
type broken struct{ noop.MeterProvider }

func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("no such instrument")

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errBroken
}

func TestARefusedInstrumentIsAnError(t *testing.T) {
	r := record.New(record.Options{})
	require.ErrorIs(t, lockotel.Instrument(r, lockotel.Options{MeterProvider: broken{}}), errBroken)
	require.NoError(t, lockotel.Instrument(r, lockotel.Options{}), "the global providers")
	require.NoError(t, locks.Do(bg, r.Wrap("l", new(fair.Mutex)), nothing), "the refused one does not listen")
}

func TestTheReadmeExplainsEveryMetricAndNoOther(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(locks[a-z._]+)`").FindAllStringSubmatch(string(text), -1) {
		explained[row[1]] = true
	}
	x := instrumented(t)
	require.NoError(t, locks.Do(bg, x.Wrap("l", new(fair.Mutex)), nothing))
	require.Equal(t, slices.Sorted(maps.Keys(x.collect(t))), slices.Sorted(maps.Keys(explained)))
}

func TestNamesBeyondTheLimitShareOneSeries(t *testing.T) {
	x := instrumented(t)
	for i := range lockotel.MaxNames + 10 {
		l := x.Wrap(fmt.Sprintf("lock %d", i), new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		require.NoError(t, l.UnlockContext(bg))
	}
	var all metricdata.ResourceMetrics
	require.NoError(t, x.reader.Collect(bg, &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "locks.acquisitions" {
			continue
		}
		points := m.Data.(metricdata.Sum[int64]).DataPoints
		require.Len(t, points, lockotel.MaxNames+1)
		for _, p := range points {
			if name, _ := p.Attributes.Value("lock.name"); name.AsString() == lockotel.Other {
				require.EqualValues(t, 10, p.Value)
				return
			}
		}
	}
	t.Fatal("no series of the others")
}

func TestShortSpansAreDroppedUnlessTheyFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := instrumentedFrom(t, time.Second)
		l := x.Wrap("l", new(fair.Mutex))
		ctx, _ := x.request()
		require.NoError(t, l.LockContext(ctx))
		time.Sleep(time.Second - 1)
		require.NoError(t, l.UnlockContext(ctx))
		require.Empty(t, x.spans.Ended())
		require.NoError(t, l.LockContext(ctx))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, l.LockContext(ended), context.Canceled)
		wait := x.span(t, "wait for l")
		require.Contains(t, wait.Attributes(), attribute.String("error.type", "cancelled"))
		time.Sleep(time.Second)
		require.NoError(t, l.UnlockContext(ctx))
		x.span(t, "hold l")
	})
}

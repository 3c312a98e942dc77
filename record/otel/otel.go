package otel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/record/internal/series"
)

const scope = "github.com/jucgo/locks/record/otel"

const (
	// MaxNames is the number of lock names that are told apart: 1000. It bounds the number of
	// series if a program makes names from its input.
	MaxNames = series.Max

	// Other is the attribute "lock.name" of all further names together, and of names that are not
	// UTF-8. A span has the attribute Other for the latter only.
	Other = series.Other
)

// Options say where the telemetry goes, and which spans are made. A nil provider is the global
// one.
type Options struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider

	// MinSpan is the least duration of a span. A shorter wait or hold makes no span, unless it
	// failed. The hold of [Do] always makes a span, which begins before the duration is known.
	MinSpan time.Duration
}

// Instrument exports what r sees, for as long as r lives. Call it once for each Recorder. Two
// Recorders with the same provider share the instruments: give their locks different names.
// Instrument returns an error if the MeterProvider refuses an instrument.
//
// An acquisition that may wait adds one measurement of a histogram, and so does the release of a
// hold. The other instruments are read when they are collected. A collection costs more with more
// names and holds.
func Instrument(r *record.Recorder, opts Options) error {
	meters, tracers := opts.MeterProvider, opts.TracerProvider
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	x := &exporter{recorder: r, tracer: tracers.Tracer(scope), minSpan: opts.MinSpan}
	x.series.Init(newAttributes)
	if err := x.measure(meters.Meter(scope)); err != nil {
		return fmt.Errorf("otel: instrument a recorder: %w", err)
	}
	r.Listen(x.observe)
	return nil
}

// exporter listens to one Recorder.
type exporter struct {
	recorder     *record.Recorder
	tracer       trace.Tracer
	waits, holds metric.Float64Histogram
	minSpan      time.Duration
	series       series.Series[*attributes]
}

// attributes are the attributes of one name, in the forms that the API takes. They are made once,
// since making them allocates.
type attributes struct {
	record  []metric.RecordOption
	observe []metric.ObserveOption
	// The attributes of failures, by the type of the failure.
	busy, timeout, cancelled, other []metric.ObserveOption
}

func newAttributes(label string) *attributes {
	kv := attribute.String("lock.name", label)
	only := metric.WithAttributeSet(attribute.NewSet(kv))
	failure := func(errorType string) []metric.ObserveOption {
		return []metric.ObserveOption{metric.WithAttributes(kv, attribute.String("error.type", errorType))}
	}
	return &attributes{
		record: []metric.RecordOption{only}, observe: []metric.ObserveOption{only},
		busy: failure("busy"), timeout: failure("timeout"), cancelled: failure("cancelled"), other: failure("_OTHER"),
	}
}

// measure makes the instruments. The histograms are recorded by events, the others are read
// from the Recorder.
func (x *exporter) measure(m metric.Meter) error {
	var errs []error
	counter := func(name, unit, help string) metric.Int64ObservableCounter {
		i, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return i
	}
	gauge := func(name, unit, help string) metric.Int64ObservableUpDownCounter {
		i, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return i
	}
	histogram := func(name, help string) metric.Float64Histogram {
		i, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help),
			metric.WithExplicitBucketBoundaries(1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000))
		errs = append(errs, err)
		return i
	}
	x.waits = histogram("locks.wait.duration", "Duration of acquisitions that may wait, with and without success.")
	x.holds = histogram("locks.hold.duration", "Time from the first acquisition of an owner to its last release.")
	acquisitions := counter("locks.acquisitions", "{acquisition}", "Acquisitions, with re-entries.")
	failures := counter("locks.acquisition.failures", "{failure}", "Acquisitions that failed, by error.type.")
	lost := counter("locks.lost", "{hold}", "Holds that were lost, counted when they are lost.")
	refused := counter("locks.unlock.failures", "{failure}",
		"Unlocks that returned an error, but for the first after a loss.")
	waiters := gauge("locks.waiters", "{call}", "Calls that wait for the lock now.")
	holders := gauge("locks.holders", "{owner}", "Owners that hold the lock now.")
	oldest, err := m.Float64ObservableGauge("locks.oldest_hold.age", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest present hold. 0 without a holder."))
	errs = append(errs, err)
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := time.Now()
		x.series.Each(x.recorder, func(s record.Stats, since time.Time) {
			_, a := x.series.Of(s.Lock)
			o.ObserveInt64(acquisitions, int64(s.Acquired), a.observe...)
			o.ObserveInt64(failures, int64(s.Busy), a.busy...)
			o.ObserveInt64(failures, int64(s.TimedOut), a.timeout...)
			o.ObserveInt64(failures, int64(s.Cancelled-s.TimedOut), a.cancelled...)
			o.ObserveInt64(failures, int64(s.Failed-s.Busy), a.other...)
			o.ObserveInt64(lost, int64(s.Lost), a.observe...)
			o.ObserveInt64(refused, int64(s.Refused), a.observe...)
			o.ObserveInt64(waiters, s.Waiting, a.observe...)
			o.ObserveInt64(holders, s.Held, a.observe...)
			age := 0.0
			if !since.IsZero() {
				age = max(now.Sub(since).Seconds(), 0)
			}
			o.ObserveFloat64(oldest, age, a.observe...)
		})
		return nil
	}, acquisitions, failures, lost, refused, waiters, holders, oldest)
	return cmp.Or(append(errs, err)...)
}

// observe is called for each event.
func (x *exporter) observe(ctx context.Context, e record.Event) {
	s := sectionFrom(ctx)
	sampled := trace.SpanContextFromContext(ctx).IsSampled()
	switch e.Kind {
	case record.Acquired, record.Cancelled, record.Failed:
		if !e.Try {
			_, a := x.series.Of(e.Lock)
			x.waits.Record(ctx, e.Wait.Seconds(), a.record...)
			if sampled && (e.Wait >= x.minSpan || e.Err != nil) {
				x.end(x.start(ctx, "wait for ", e, e.Wait), e)
			}
		}
		if e.Kind == record.Acquired && e.Holds == 1 && s != nil && s.span == nil && sampled {
			s.lock, s.span = e.Lock, x.start(ctx, "hold ", e, 0)
		}
	case record.Released:
		if e.Holds > 0 {
			return
		}
		_, a := x.series.Of(e.Lock)
		x.holds.Record(ctx, e.Held.Seconds(), a.record...)
		if s.of(e.Lock) {
			x.end(s.span, e)
			s.span = nil
		} else if sampled && e.Held >= x.minSpan {
			x.end(x.start(ctx, "hold ", e, e.Held), e)
		}
	case record.Refused:
		loss := errors.Is(e.Err, locks.ErrLost)
		switch {
		case s.of(e.Lock):
			if loss {
				s.lose(s.span)
			}
			x.end(s.span, e)
			s.span = nil
		case sampled && loss && e.Held > 0:
			span := x.start(ctx, "hold ", e, e.Held)
			span.AddEvent("lost", trace.WithTimestamp(x.time(e.At)))
			x.end(span, e)
		}
	}
}

func (x *exporter) time(at time.Duration) time.Time { return x.recorder.Start().Add(at) }

// start starts a span that began some time before e. The texts of a span have to be UTF-8. An
// exporter cannot encode any other text, and loses all spans that it sends in the same request.
func (x *exporter) start(ctx context.Context, verb string, e record.Event, before time.Duration) trace.Span {
	label, _ := x.series.Of(e.Lock)
	name := e.Lock
	if !utf8.ValidString(name) {
		name = label
	}
	_, span := x.tracer.Start(ctx, verb+label, trace.WithTimestamp(x.time(e.At-before)),
		trace.WithAttributes(attribute.String("lock.name", name), attribute.Stringer("lock.owner", e.Owner),
			attribute.Bool("lock.shared", e.Shared)))
	return span
}

// end ends a span at e, with its error.
func (x *exporter) end(span trace.Span, e record.Event) {
	if e.Err != nil {
		span.SetStatus(codes.Error, strings.ToValidUTF8(e.Err.Error(), "\uFFFD"))
		span.SetAttributes(attribute.String("error.type", errorType(e)))
	}
	span.End(trace.WithTimestamp(x.time(e.At)))
}

// errorType returns the attribute "error.type" of a failed call, as the metrics have it.
func errorType(e record.Event) string {
	switch {
	case errors.Is(e.Err, locks.ErrLost):
		return "lost"
	case e.Kind == record.Cancelled && errors.Is(e.Err, context.DeadlineExceeded):
		return "timeout"
	case e.Kind == record.Cancelled:
		return "cancelled"
	}
	return "_OTHER"
}

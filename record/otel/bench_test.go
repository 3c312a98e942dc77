package otel_test

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	lockotel "github.com/jucgo/locks/record/otel"
)

// BenchmarkUncontended shows what telemetry adds to a lock and an unlock: without a span of the
// caller, and with one, so that both make spans, which no processor takes.
func BenchmarkUncontended(b *testing.B) {
	exported := record.New(record.Options{})
	tracers := sdktrace.NewTracerProvider()
	if err := lockotel.Instrument(exported, lockotel.Options{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		TracerProvider: tracers,
	}); err != nil {
		b.Fatal(err)
	}
	sampled, span := tracers.Tracer("bench").Start(bg, "request")
	defer span.End()
	for _, l := range []struct {
		name string
		ctx  context.Context
		lock locks.TryLocker
	}{
		{"bare", bg, new(fair.Mutex)},
		{"recorded", bg, record.New(record.Options{}).Wrap("l", new(fair.Mutex))},
		{"exported", bg, exported.Wrap("l", new(fair.Mutex))},
		{"traced", sampled, exported.Wrap("l", new(fair.Mutex))},
	} {
		b.Run(l.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = l.lock.LockContext(l.ctx)
				_ = l.lock.UnlockContext(l.ctx)
			}
		})
	}
	b.Run("section", func(b *testing.B) {
		lock := exported.Wrap("l", new(fair.Mutex))
		b.ReportAllocs()
		for b.Loop() {
			_ = lockotel.Do(sampled, lock, nothing)
		}
	})
}

// Command otel prints the spans of requests that share a lock.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	lockotel "github.com/jucgo/locks/record/otel"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// Your program has an exporter here, and a reader that sends the metrics.
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(new(printer)))
	defer tracers.Shutdown(ctx)
	tracer := tracers.Tracer("shop")
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer meters.Shutdown(ctx)

	recorder := record.New(record.Options{})
	options := lockotel.Options{MeterProvider: meters, TracerProvider: tracers}
	if err := lockotel.Instrument(recorder, options); err != nil {
		return err
	}
	accounts := recorder.Wrap("accounts", new(fair.Mutex))

	var requests sync.WaitGroup
	for i := range 2 {
		requests.Go(func() {
			ctx, span := tracer.Start(ctx, fmt.Sprintf("request %d", i))
			defer span.End()
			// The context of the section carries the span of the hold.
			_ = lockotel.Do(ctx, accounts, func(ctx context.Context) error {
				_, span := tracer.Start(ctx, "transfer")
				defer span.End()
				time.Sleep(100 * time.Millisecond) // the work
				return nil
			})
		})
	}
	requests.Wait()

	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		return err
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, m.Unit)
	}
	return nil
}

// printer is an exporter that prints each span with its parent.
type printer struct{}

func (printer) Shutdown(context.Context) error { return nil }

func (printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		fmt.Printf("%v in %v: %-17s %v\n", s.SpanContext().SpanID(), s.Parent().SpanID(), s.Name(),
			s.EndTime().Sub(s.StartTime()).Round(time.Millisecond))
	}
	return nil
}

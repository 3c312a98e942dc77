package otel_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	lockotel "github.com/jucgo/locks/record/otel"
)

// A call whose context has a span makes spans for its wait and its hold.
func ExampleOptions() {
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))

	recorder := record.New(record.Options{})
	if err := lockotel.Instrument(recorder, lockotel.Options{TracerProvider: tracers}); err != nil {
		fmt.Println(err)
		return
	}
	lock := recorder.Wrap("accounts", new(fair.Mutex))

	ctx, request := tracers.Tracer("shop").Start(context.Background(), "request")
	_ = locks.Do(ctx, lock, func(context.Context) error { return nil })
	request.End()
	for _, s := range spans.Ended() {
		fmt.Println(s.Name())
	}
	// Output:
	// wait for accounts
	// hold accounts
	// request
}

// The context of the section carries the span of the hold.
func ExampleDo() {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	recorder := record.New(record.Options{})
	if err := lockotel.Instrument(recorder, lockotel.Options{TracerProvider: tracer}); err != nil {
		fmt.Println(err)
		return
	}
	lock := recorder.Wrap("accounts", new(fair.Mutex))

	ctx, request := tracer.Tracer("shop").Start(context.Background(), "request")
	_ = lockotel.Do(ctx, lock, func(ctx context.Context) error {
		_, transfer := tracer.Tracer("shop").Start(ctx, "transfer")
		transfer.End()
		return nil
	})
	request.End()

	all := spans.Ended() // wait, transfer, hold, request
	fmt.Println(all[1].Parent().SpanID() == all[2].SpanContext().SpanID())
	fmt.Println(all[2].Parent().SpanID() == all[3].SpanContext().SpanID())
	// Output:
	// true
	// true
}

package prom_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/record/prom"
)

func Example() {
	recorder := record.New(record.Options{})
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(prom.NewCollector(recorder))

	lock := recorder.Wrap("accounts", new(fair.Mutex))
	_ = locks.Do(context.Background(), lock, func(context.Context) error { return nil })

	families, _ := registry.Gather()
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	// Output:
	// locks_acquisition_failures_total
	// locks_acquisitions_total
	// locks_hold_seconds
	// locks_holders
	// locks_lost_total
	// locks_oldest_hold_age_seconds
	// locks_refused_unlocks_total
	// locks_wait_seconds
	// locks_waiters
}

// A second recorder in one process gets a label.
func ExampleNewCollector() {
	var requests, jobs *prom.Collector = prom.NewCollector(record.New(record.Options{})),
		prom.NewCollector(record.New(record.Options{}))

	registry := prometheus.NewRegistry()
	registry.MustRegister(requests)
	fmt.Println(registry.Register(jobs) != nil)

	labelled := prometheus.NewRegistry()
	for part, c := range map[string]*prom.Collector{"requests": requests, "jobs": jobs} {
		prometheus.WrapRegistererWith(prometheus.Labels{"part": part}, labelled).MustRegister(c)
	}
	// Output: true
}

// Exemplars lead from a slow wait to its trace. The key of the trace depends on the program.
func ExampleOption() {
	type traceKey struct{}
	trace := func(ctx context.Context) prometheus.Labels {
		if id, ok := ctx.Value(traceKey{}).(string); ok {
			return prometheus.Labels{"trace_id": id}
		}
		return nil
	}
	opts := []prom.Option{prom.WithExemplars(trace), prom.WithBuckets(0.001, 0.1, 10)}
	prometheus.NewRegistry().MustRegister(prom.NewCollector(record.New(record.Options{}), opts...))
	// Output:
}

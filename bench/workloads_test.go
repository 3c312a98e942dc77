package bench_test

import (
	"testing"

	"github.com/jucgo/locks/internal/bench"
)

// BenchmarkWorkload runs the workloads that the command bench/compare runs with the locks of
// other modules too. The unit of most is the time of an operation. It is the processor time where
// waits end or change hands, and the heap that a lock takes.
func BenchmarkWorkload(b *testing.B) {
	for _, w := range bench.Workloads() {
		b.Run(w.Name, func(b *testing.B) {
			for _, s := range w.Subjects {
				b.Run(s.Name, func(b *testing.B) {
					run := s.New()
					b.ReportAllocs()
					b.ResetTimer()
					cost, err := run(b.N)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(cost, w.Unit+"/op")
				})
			}
		})
	}
}

package bench_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/bench"
	"github.com/jucgo/locks/rwlock"
)

// BenchmarkSteadyWriter has one writer among steady readers, all of them 300 steps inside and
// none outside. The time is per write. The other figures are the writer's waits, and the reads
// per second of all readers together.
func BenchmarkSteadyWriter(b *testing.B) {
	for _, l := range []struct {
		name string
		make func() bench.ReadWriter
	}{
		{"sync.RWMutex", func() bench.ReadWriter { return new(sync.RWMutex) }},
		{"rwlock.RWMutex", func() bench.ReadWriter { return new(rwlock.RWMutex) }},
		{"rwlock.RWMutex-FIFO", func() bench.ReadWriter { return rwlock.New(locks.FIFO) }},
	} {
		b.Run(l.name, func(b *testing.B) {
			for _, readers := range []int{2, 8} {
				b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
					s, err := bench.ContendSteadily(l.make(), readers, b.N, 0)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(s.Elapsed)/float64(s.Writes), "ns/op")
					b.ReportMetric(float64(s.Reads)/s.Elapsed.Seconds(), "reads/s")
					b.ReportMetric(float64(s.Waits.Quantile(0.50)), "p50-ns")
					b.ReportMetric(float64(s.Waits.Quantile(0.99)), "p99-ns")
				})
			}
		})
	}
}

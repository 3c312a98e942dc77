package bench_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/jucgo/locks/internal/bench"
)

// BenchmarkRead is a lock and an unlock for reading, or an optimistic read and its validation, by
// so many goroutines at once and with nobody writing. The time is per read, all readers taken
// together.
func BenchmarkRead(b *testing.B) {
	procs := runtime.GOMAXPROCS(0)
	counts := []int{1, procs, 4 * procs}
	slices.Sort(counts)
	for _, l := range bench.RWLocks() {
		b.Run(l.Name, func(b *testing.B) {
			for _, readers := range slices.Compact(counts) {
				b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
					pairs := l.Pairs()
					b.ReportAllocs()
					var wg sync.WaitGroup
					b.ResetTimer()
					for i := range readers {
						n := b.N / readers
						if i < b.N%readers {
							n++
						}
						wg.Go(func() { pairs(n) })
					}
					wg.Wait()
				})
			}
		})
	}
}

// BenchmarkMixed has four goroutines per core read what they guard, and write it in so many of a
// hundred operations, in no particular order.
func BenchmarkMixed(b *testing.B) {
	const chunk = 100
	for _, l := range bench.RWLocks() {
		b.Run(l.Name, func(b *testing.B) {
			for _, percent := range []int{0, 1, 10, 50} {
				b.Run(fmt.Sprintf("write=%d%%", percent), func(b *testing.B) {
					read, write := l.New()
					b.SetParallelism(4)
					b.ReportAllocs()
					b.RunParallel(func(pb *testing.PB) {
						// Which operations of a chunk write; drawn once, since drawing takes
						// longer than reading.
						var writes [chunk]bool
						for _, i := range rand.Perm(chunk)[:percent] {
							writes[i] = true
						}
						for i := 0; pb.Next(); i++ {
							if writes[i%chunk] {
								write()
							} else if read(1) != 0 {
								b.Error("a reader saw half of a write")
							}
						}
					})
				})
			}
		})
	}
}

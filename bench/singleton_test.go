package bench_test

import (
	"sync"
	"testing"

	"github.com/jucgo/locks/singleton"
)

// Package variables, as singletons are. The compiler sees through a closure in a local one, and
// calls nothing.
var (
	lazyAnswer = singleton.New(func() (int, error) { return 42, nil })
	onceAnswer = sync.OnceValue(func() int { return 42 })
)

// BenchmarkSingleton is getting a value that was constructed before, as all callers but the first
// do. The loops count b.N themselves: B.Loop would have every result written to memory.
func BenchmarkSingleton(b *testing.B) {
	b.Run("singleton.Lazy", func(b *testing.B) {
		lazyAnswer.MustGet()
		sum := 0
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			v, err := lazyAnswer.Get()
			if err != nil {
				b.Fatal(err)
			}
			sum += v
		}
		check(b, sum)
	})
	b.Run("sync.OnceValue", func(b *testing.B) {
		onceAnswer()
		sum := 0
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			sum += onceAnswer()
		}
		check(b, sum)
	})
	b.Run("sync.Mutex", func(b *testing.B) {
		var (
			mu    sync.Mutex
			value *int
		)
		get := func() int {
			mu.Lock()
			defer mu.Unlock()
			if value == nil {
				value = new(int)
				*value = 42
			}
			return *value
		}
		get()
		sum := 0
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			sum += get()
		}
		check(b, sum)
	})
}

func check(b *testing.B, sum int) {
	if sum != 42*b.N {
		b.Fatalf("%d values add up to %d", b.N, sum)
	}
}

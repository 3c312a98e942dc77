package bench_test

import (
	"sync"
	"testing"

	"github.com/jucgo/locks/singleton"
)

// BenchmarkSingleton is getting a value that was constructed before, as all callers but the first do.
func BenchmarkSingleton(b *testing.B) {
	b.Run("singleton.Lazy", func(b *testing.B) {
		lazy := singleton.New(func() (int, error) { return 42, nil })
		lazy.MustGet()
		sum := 0
		b.ReportAllocs()
		for b.Loop() {
			v, err := lazy.Get()
			if err != nil {
				b.Fatal(err)
			}
			sum += v
		}
		check(b, sum)
	})
	b.Run("sync.OnceValue", func(b *testing.B) {
		get := sync.OnceValue(func() int { return 42 })
		get()
		sum := 0
		b.ReportAllocs()
		for b.Loop() {
			sum += get()
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
		for b.Loop() {
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

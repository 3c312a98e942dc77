package bench_test

import (
	"sync/atomic"
	"testing"

	"github.com/jucgo/locks/cas"
)

// BenchmarkCAS is a load and a compare-and-swap that succeeds. It advances a bare word, a value
// with a stamp in one word, a pointer to a fresh pair as people write it by hand, and a pointer
// with a stamp.
func BenchmarkCAS(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		var word atomic.Uint64
		b.ReportAllocs()
		for b.Loop() {
			old := word.Load()
			if !word.CompareAndSwap(old, old+1) {
				b.Fatal("lost a race against nobody")
			}
		}
	})
	b.Run("packed", func(b *testing.B) {
		var p cas.Packed
		b.ReportAllocs()
		for b.Loop() {
			value, stamp := p.Load()
			if !p.CompareAndSwap(value, value+1, stamp, stamp+1) {
				b.Fatal("lost a race against nobody")
			}
		}
	})
	b.Run("pointer", func(b *testing.B) {
		type pair struct {
			ref   *int
			stamp uint64
		}
		var p atomic.Pointer[pair]
		p.Store(&pair{ref: new(int)})
		b.ReportAllocs()
		for b.Loop() {
			old := p.Load()
			if !p.CompareAndSwap(old, &pair{old.ref, old.stamp + 1}) {
				b.Fatal("lost a race against nobody")
			}
		}
	})
	b.Run("stamped", func(b *testing.B) {
		s := cas.NewStamped(new(int), 0)
		b.ReportAllocs()
		for b.Loop() {
			ref, stamp := s.Load()
			if !s.CompareAndSwap(ref, ref, stamp, stamp+1) {
				b.Fatal("lost a race against nobody")
			}
		}
	})
}

package record_test

import (
	"runtime/pprof"
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

// BenchmarkUncontended shows what a wrapper adds to a lock and an unlock.
func BenchmarkUncontended(b *testing.B) {
	for _, l := range []struct {
		name string
		lock locks.TryLocker
	}{
		{"bare", new(reentrant.Mutex)},
		{"counted", record.New(record.Options{}).Wrap("l", new(reentrant.Mutex))},
		{"logged", record.New(record.Options{Events: 1000}).Wrap("l", new(reentrant.Mutex))},
		{"profiled", record.New(record.Options{Held: pprof.NewProfile("bench")}).Wrap("l", new(reentrant.Mutex))},
	} {
		b.Run(l.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = l.lock.LockContext(bg)
				_ = l.lock.UnlockContext(bg)
			}
		})
	}
}

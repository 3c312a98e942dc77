package prom_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/record/prom"
)

// BenchmarkUncontended shows what a collector adds to a lock and an unlock.
func BenchmarkUncontended(b *testing.B) {
	exported := record.New(record.Options{})
	prometheus.NewRegistry().MustRegister(prom.NewCollector(exported))
	for _, l := range []struct {
		name string
		lock locks.TryLocker
	}{
		{"bare", new(fair.Mutex)},
		{"recorded", record.New(record.Options{}).Wrap("l", new(fair.Mutex))},
		{"exported", exported.Wrap("l", new(fair.Mutex))},
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

// BenchmarkScrape shows what one scrape of a hundred locks costs.
func BenchmarkScrape(b *testing.B) {
	r := record.New(record.Options{})
	reg := prometheus.NewRegistry()
	reg.MustRegister(prom.NewCollector(r))
	for i := range 100 {
		_ = locks.Do(bg, r.Wrap(string(rune('a'+i)), new(fair.Mutex)), nothing)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

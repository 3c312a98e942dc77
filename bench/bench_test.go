package bench_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/bench"
)

// BenchmarkUncontended is a lock and an unlock that nobody else interferes with.
func BenchmarkUncontended(b *testing.B) {
	for _, l := range bench.Locks() {
		b.Run(l.Name, func(b *testing.B) {
			pairs := l.Pairs()
			b.ReportAllocs()
			b.ResetTimer()
			pairs(b.N)
		})
	}
	for _, l := range bench.RWLocks() {
		b.Run(l.Name, func(b *testing.B) {
			pairs := l.Pairs()
			b.ReportAllocs()
			b.ResetTimer()
			pairs(b.N)
		})
	}
}

// BenchmarkReentry is a lock and an unlock by the goroutine that holds the lock.
func BenchmarkReentry(b *testing.B) {
	for _, l := range bench.Locks() {
		if l.Reentry == nil {
			continue
		}
		b.Run(l.Name, func(b *testing.B) {
			pairs := l.Reentry()
			pairs(1) // Takes the lock.
			b.ReportAllocs()
			b.ResetTimer()
			pairs(b.N)
		})
	}
	for _, l := range bench.RWLocks() {
		if l.Reentry == nil {
			continue
		}
		b.Run(l.Name, func(b *testing.B) {
			pairs := l.Reentry()
			b.ReportAllocs()
			b.ResetTimer()
			pairs(b.N)
		})
	}
}

// BenchmarkContended has four goroutines per core do next to nothing but lock and unlock. The
// time is of a run that is disturbed as little as possible; the streak of another, which keeps
// account of the waiters.
func BenchmarkContended(b *testing.B) {
	for _, l := range bench.Locks() {
		b.Run(l.Name, func(b *testing.B) {
			c := bench.Contest{Goroutines: 4 * runtime.GOMAXPROCS(0), Ops: b.N}
			timed := c
			timed.Sample = 64
			r := contend(b, l, timed)

			watched := c
			watched.Ops, watched.Streaks = min(b.N, 2_000_000), true
			w, err := bench.Contend(b.Context(), l.New(), watched)
			if err != nil {
				b.Fatal(err)
			}
			r.Streak = w.Streak
			report(b, r)
		})
	}
}

// BenchmarkContended64 has 64 goroutines work as long with the lock as without. All waits are
// measured, in the run that is timed.
func BenchmarkContended64(b *testing.B) {
	const work = 300 * time.Nanosecond
	for _, l := range bench.Locks() {
		b.Run(l.Name, func(b *testing.B) {
			report(b, contend(b, l, bench.Contest{
				Goroutines: 64, Ops: b.N, Inside: work, Outside: work, Sample: 1, Streaks: true,
			}))
		})
	}
}

// contend times c on a lock of kind l, and nothing else.
func contend(b *testing.B, l bench.Lock, c bench.Contest) bench.Result {
	b.ReportAllocs()
	c.Begin, c.End = b.ResetTimer, b.StopTimer
	r, err := bench.Contend(b.Context(), l.New(), c)
	if err != nil {
		b.Fatal(err)
	}
	if r.Ops != b.N {
		b.Fatalf("%d acquisitions of %d", r.Ops, b.N)
	}
	return r
}

// report reports the benefit of fairness, in addition to its cost.
func report(b *testing.B, r bench.Result) {
	b.ReportMetric(float64(r.Waits.Quantile(0.50)), "p50-ns")
	b.ReportMetric(float64(r.Waits.Quantile(0.99)), "p99-ns")
	b.ReportMetric(float64(r.Waits.Max()), "max-ns")
	b.ReportMetric(r.Jain, "jain")
	b.ReportMetric(float64(r.Streak), "streak")
}

// waiter has the methods that condition.Cond and sync.Cond share.
type waiter interface {
	Wait()
	Broadcast()
}

// BenchmarkBroadcast is the time from a broadcast to 1000 waiters until all have had the lock and
// given it back.
func BenchmarkBroadcast(b *testing.B) {
	for _, kind := range []struct {
		name string
		make func() (sync.Locker, waiter)
	}{
		{"condition.Cond", func() (sync.Locker, waiter) {
			l := new(fair.BargingMutex)
			return l, condition.New(l)
		}},
		{"sync.Cond", func() (sync.Locker, waiter) {
			l := new(sync.Mutex)
			return l, sync.NewCond(l)
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			l, c := kind.make()
			var total time.Duration
			for range b.N {
				total += broadcast(b, l, c, 1000)
			}
			// Instead of the benchmark's own clock, which includes getting the waiters to wait.
			// Stopping it in each round would stop the world.
			b.ReportMetric(float64(total)/float64(b.N), "ns/op")
		})
	}
}

// broadcast lets n goroutines wait for c, whose lock is l, and returns how long a broadcast takes
// to bring all of them to an end.
func broadcast(b *testing.B, l sync.Locker, c waiter, n int) time.Duration {
	// All of these are guarded by l.
	waiting, through, open := 0, 0, false
	all := make(chan struct{})

	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			l.Lock()
			if waiting++; waiting == n {
				close(all)
			}
			for !open {
				c.Wait()
			}
			through++
			l.Unlock()
		})
	}
	<-all
	l.Lock() // The last to wait does so as well when the lock is free again.
	open = true
	start := time.Now()
	c.Broadcast()
	l.Unlock()
	done.Wait()
	took := time.Since(start)
	if through != n {
		b.Fatalf("%d of %d went through: %v", through, n, bench.ErrExclusion)
	}
	return took
}

// BenchmarkPingPong is a round trip between two goroutines over unbuffered channels: two changes of
// goroutine by the means that every program has.
func BenchmarkPingPong(b *testing.B) {
	there, back := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for range there {
			back <- struct{}{}
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		there <- struct{}{}
		<-back
	}
	close(there)
	done.Wait()
}

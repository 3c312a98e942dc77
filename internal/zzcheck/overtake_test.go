package zzcheck

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks/bench"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/spin"
)

// How many acquisitions by others happen between a goroutine's call of Lock and its return?
func TestOvertaken(t *testing.T) {
	for _, k := range []struct {
		n string
		f func() sync.Locker
	}{
		{"fair.Mutex", func() sync.Locker { return new(fair.Mutex) }},
		{"reentrant FIFO", func() sync.Locker { return reentrant.New(fair.FIFO) }},
		{"rwlock FIFO", func() sync.Locker { return rwlock.New(fair.FIFO) }},
		{"spin.Ticket", func() sync.Locker { return new(spin.Ticket) }},
		{"spin.MCS", func() sync.Locker { return new(spin.MCS) }},
		{"sync.Mutex", func() sync.Locker { return new(sync.Mutex) }},
	} {
		var worst []int64
		over := 0
		for range 4 {
			l := k.f()
			var seq atomic.Int64
			var max int64
			var stop atomic.Bool
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for !stop.Load() {
						a := seq.Load()
						l.Lock()
						n := seq.Add(1) - 1 - a
						if n > max {
							max = n
						}
						if n > 1000 {
							over++
						}
						bench.Work(300)
						l.Unlock()
						bench.Work(300)
					}
				})
			}
			time.Sleep(500 * time.Millisecond)
			stop.Store(true)
			wg.Wait()
			worst = append(worst, max)
			runtime.GC()
		}
		t.Log(k.n, "most acquisitions by others during one Lock call, 4 contests of 0.5 s:", worst, "; calls overtaken by more than 1000:", over)
	}
}

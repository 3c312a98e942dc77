//lint:file-ignore SA2001 Locking and unlocking is all there is to measure.

package main

import (
	"context"
	"sync"
	"time"

	linkdata "github.com/linkdata/deadlock"
	"github.com/moby/locker"
	"github.com/neilotoole/fifomu"
	"github.com/puzpuzpuz/xsync/v4"
	sasha "github.com/sasha-s/go-deadlock"

	"github.com/jucgo/locks/internal/bench"
)

// live can end, but never does.
var live, _ = context.WithCancel(context.Background())

// workloads returns all workloads, with the locks of other modules.
func workloads() []bench.Workload {
	ws := bench.Workloads()
	for i := range ws {
		ws[i].Subjects = append(ws[i].Subjects, peers()[ws[i].Name]...)
	}
	return ws
}

// peers returns the locks of other modules, by workload.
func peers() map[string][]bench.Subject {
	const work = 300 * time.Nanosecond
	newFifomu := func() sync.Locker { return new(fifomu.Mutex) }
	reads := func() func(int) {
		m := xsync.NewRBMutex()
		return func(n int) {
			for range n {
				m.RUnlock(m.RLock())
			}
		}
	}
	detecting := bench.Loop("sasha-s/go-deadlock.Mutex", func() func(int) {
		m := new(sasha.Mutex)
		return func(n int) {
			for range n {
				m.Lock()
				m.Unlock()
			}
		}
	})
	byKey := mobyLocker()
	return map[string][]bench.Subject{
		bench.Uncontended: {
			bench.Loop("fifomu.Mutex", func() func(int) {
				m := new(fifomu.Mutex)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			}),
			detecting,
			bench.Loop("linkdata/deadlock.Mutex", func() func(int) {
				m := new(linkdata.DeadlockMutex)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			}),
		},
		bench.Recorded:   {detecting},
		bench.ReadPair:   {bench.Loop("xsync.RBMutex.R", reads)},
		bench.TwoReaders: {bench.Parallel("xsync.RBMutex.R", 2, reads)},
		bench.LiveContext: {bench.Loop("fifomu.Mutex", func() func(int) {
			m := new(fifomu.Mutex)
			return func(n int) {
				for range n {
					_ = m.LockContext(live)
					m.Unlock()
				}
			}
		})},
		bench.Contended2: {bench.Contended("fifomu.Mutex", newFifomu, bench.Contest{Goroutines: 2})},
		bench.FIFO8:      {bench.Contended("fifomu.Mutex", newFifomu, bench.Contest{Goroutines: 8})},
		bench.FIFO8Work: {bench.Contended("fifomu.Mutex", newFifomu,
			bench.Contest{Goroutines: 8, Inside: work, Outside: work})},
		bench.Goroutines: {bench.Contended("fifomu.Mutex", newFifomu,
			bench.Contest{Goroutines: 64, Inside: work, Outside: work})},
		bench.OneKey:     {byKey[0]},
		bench.ManyKeys:   {byKey[1]},
		bench.SharedKeys: {byKey[2]},
		bench.FewKeys:    {byKey[3]},
		bench.LiveContext8: {bench.Contended("fifomu.Mutex", func() sync.Locker {
			return bench.LiveLocker{L: fifoContext{new(fifomu.Mutex)}}
		}, bench.Contest{Goroutines: 8})},
		bench.HeapBytes: {bench.BytesOf("fifomu.Mutex", func() any {
			m := new(fifomu.Mutex)
			m.Lock()
			m.Unlock()
			return m
		})},
	}
}

// fifoContext is a fifomu.Mutex as a bench.ContextLocker.
type fifoContext struct{ *fifomu.Mutex }

func (m fifoContext) UnlockContext(context.Context) error { m.Unlock(); return nil }

func mobyLocker() [4]bench.Subject {
	l := locker.New()
	return bench.KeySubjects("moby/locker", l.Lock, func(key string) { _ = l.Unlock(key) })
}

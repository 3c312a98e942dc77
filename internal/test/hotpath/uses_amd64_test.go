package hotpath

import (
	"sync"

	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/singleton"
	"github.com/jucgo/locks/spin"
	"github.com/jucgo/locks/synchronizer"
)

// These functions are callers of locks. The fast paths in them must be inlined.

//go:noinline
func useFair(m *fair.Mutex) {
	m.Lock()
	m.Unlock()
}

//go:noinline
func useRead(rw *fair.RWMutex) {
	rw.RLock()
	rw.RUnlock()
}

//go:noinline
func useWrite(rw *fair.RWMutex) {
	rw.Lock()
	rw.Unlock()
}

//go:noinline
func useBarging(m *fair.BargingMutex) {
	m.Lock()
	m.Unlock()
}

//go:noinline
func useSpin(m *spin.Mutex) {
	m.Lock()
	m.Unlock()
}

//go:noinline
func useMCS(m *spin.MCS) {
	m.Lock()
	m.Unlock()
}

// mutex are the rules of a mutex.
type mutex struct{}

func (mutex) Acquire(w, _ uint64) (uint64, bool) { return 1, w == 0 }
func (mutex) Release(w, _ uint64) (uint64, bool) { return 0, w == 1 }

//go:noinline
func useSync(s *synchronizer.Sync[mutex]) {
	if s.TryAcquire(1) {
		s.Release(1)
	}
}

//go:noinline
func useOptimistic(l *rwlock.StampedLock) bool { return l.Validate(l.TryOptimisticRead()) }

//go:noinline
func useSnapshot(s *rwlock.Snapshot[int]) int { return s.Load() }

//go:noinline
func useLazy(l *singleton.Lazy[int]) int {
	n, _ := l.Get()
	return n
}

//go:noinline
func usePacked(p *cas.Packed) bool {
	value, stamp := p.Load()
	return p.CompareAndSwap(value, value+1, stamp, stamp+1)
}

// A goroutine that wakes pays for each function that it returns through.
//
//go:noinline
func usePark(p *park.Place, g *sync.Mutex) { p.ParkAndUnlock(g) }

// all keeps the functions in the binary.
var all = []any{
	useFair, useRead, useWrite, useBarging, useSpin, useMCS, useSync, useOptimistic, useSnapshot, useLazy, usePacked,
	usePark,
	(*reentrant.Mutex).Lock, (*reentrant.Mutex).Unlock,
	(*rwlock.RWMutex).Lock, (*rwlock.RWMutex).Unlock,
	(*rwlock.RWMutex).RLock, (*rwlock.RWMutex).RUnlock,
	(*rwlock.StampedLock).ReadLock, (*rwlock.StampedLock).UnlockRead,
	(*rwlock.StampedLock).WriteLock, (*rwlock.StampedLock).UnlockWrite,
	(*semaphore.Weighted).Acquire, (*semaphore.Weighted).TryAcquire, (*semaphore.Weighted).Release,
	(*spin.Ticket).Lock, (*spin.Ticket).Unlock,
}

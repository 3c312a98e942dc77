//lint:file-ignore SA2001 Locking and unlocking is all there is to measure.

package bench

import (
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/rwlock"
)

// Guarded is the value that a lock with a read side guards while it is measured: two numbers that
// every write advances together. They are atomic for the sake of optimistic readers; the others
// pay next to nothing for it.
type Guarded struct{ a, b atomic.Uint64 }

// write is called with the lock held for writing.
func (g *Guarded) write() {
	n := g.a.Load() + 1
	g.a.Store(n)
	g.b.Store(n)
}

// read returns 0 if the numbers agree.
func (g *Guarded) read() uint64 { return g.a.Load() ^ g.b.Load() }

// RWLock is a way to read under a kind of lock.
type RWLock struct {
	// Name is the Go type, with the way to read behind it.
	Name string
	// New returns loops over one fresh lock. read acquires it for reading n times, and returns
	// not 0 if a reader saw half of a write. write acquires it once for writing. The loops are
	// written out for each type, as in Lock.
	New func() (read func(n int) uint64, write func())
	// Pairs returns a loop that takes and releases a free lock for reading n times, and does
	// nothing else.
	Pairs func() func(n int)
	// Reentry is Pairs for a lock that the goroutine reads already; nil if it cannot.
	Reentry func() func(n int)
}

// RWLocks returns all of them, the reference first.
func RWLocks() []RWLock {
	return []RWLock{
		{
			Name: "sync.RWMutex.R",
			New: func() (func(int) uint64, func()) {
				l, g := new(sync.RWMutex), new(Guarded)
				return func(n int) (torn uint64) {
						for range n {
							l.RLock()
							torn |= g.read()
							l.RUnlock()
						}
						return torn
					}, func() {
						l.Lock()
						g.write()
						l.Unlock()
					}
			},
			Pairs: func() func(int) {
				l := new(sync.RWMutex)
				return func(n int) {
					for range n {
						l.RLock()
						l.RUnlock()
					}
				}
			},
		},
		{
			Name: "fair.RWMutex.R",
			New: func() (func(int) uint64, func()) {
				l, g := new(fair.RWMutex), new(Guarded)
				return func(n int) (torn uint64) {
						for range n {
							l.RLock()
							torn |= g.read()
							l.RUnlock()
						}
						return torn
					}, func() {
						l.Lock()
						g.write()
						l.Unlock()
					}
			},
			Pairs: func() func(int) {
				l := new(fair.RWMutex)
				return func(n int) {
					for range n {
						l.RLock()
						l.RUnlock()
					}
				}
			},
		},
		{
			Name: "rwlock.RWMutex.R",
			New: func() (func(int) uint64, func()) {
				l, g := new(rwlock.RWMutex), new(Guarded)
				return func(n int) (torn uint64) {
						for range n {
							l.RLock()
							torn |= g.read()
							l.RUnlock()
						}
						return torn
					}, func() {
						l.Lock()
						g.write()
						l.Unlock()
					}
			},
			Pairs: func() func(int) {
				l := new(rwlock.RWMutex)
				return func(n int) {
					for range n {
						l.RLock()
						l.RUnlock()
					}
				}
			},
			Reentry: func() func(int) {
				l := new(rwlock.RWMutex)
				return func(n int) {
					l.RLock()
					for range n {
						l.RLock()
						l.RUnlock()
					}
					l.RUnlock()
				}
			},
		},
		{
			Name: "rwlock.RWMutex-FIFO.R",
			New: func() (func(int) uint64, func()) {
				l, g := rwlock.New(locks.FIFO), new(Guarded)
				return func(n int) (torn uint64) {
						for range n {
							l.RLock()
							torn |= g.read()
							l.RUnlock()
						}
						return torn
					}, func() {
						l.Lock()
						g.write()
						l.Unlock()
					}
			},
			Pairs: func() func(int) {
				l := rwlock.New(locks.FIFO)
				return func(n int) {
					for range n {
						l.RLock()
						l.RUnlock()
					}
				}
			},
			Reentry: func() func(int) {
				l := rwlock.New(locks.FIFO)
				return func(n int) {
					l.RLock()
					for range n {
						l.RLock()
						l.RUnlock()
					}
					l.RUnlock()
				}
			},
		},
		{
			Name: "rwlock.StampedLock.R",
			New: func() (func(int) uint64, func()) {
				l, g := new(rwlock.StampedLock), new(Guarded)
				return func(n int) (torn uint64) {
						for range n {
							st := l.ReadLock()
							torn |= g.read()
							l.UnlockRead(st)
						}
						return torn
					}, func() {
						st := l.WriteLock()
						g.write()
						l.UnlockWrite(st)
					}
			},
			Pairs: func() func(int) {
				l := new(rwlock.StampedLock)
				return func(n int) {
					for range n {
						l.UnlockRead(l.ReadLock())
					}
				}
			},
		},
		{
			Name: "rwlock.StampedLock.Optimistic",
			New: func() (func(int) uint64, func()) {
				l, g := new(rwlock.StampedLock), new(Guarded)
				return func(n int) (torn uint64) {
						for range n {
							if st := l.TryOptimisticRead(); st != 0 {
								if t := g.read(); l.Validate(st) {
									torn |= t
									continue
								}
							}
							st := l.ReadLock()
							torn |= g.read()
							l.UnlockRead(st)
						}
						return torn
					}, func() {
						st := l.WriteLock()
						g.write()
						l.UnlockWrite(st)
					}
			},
			Pairs: func() func(int) {
				l := new(rwlock.StampedLock)
				return func(n int) {
					for range n {
						if !l.Validate(l.TryOptimisticRead()) {
							panic("bench: somebody writes")
						}
					}
				}
			},
		},
		snapshots(),
	}
}

// snapshots is rwlock.Snapshot, whose readers take no lock.
func snapshots() RWLock {
	return RWLock{
		Name: "rwlock.Snapshot",
		New: func() (func(int) uint64, func()) {
			s := new(rwlock.Snapshot[[2]uint64])
			return func(n int) (torn uint64) {
					for range n {
						v := s.Load()
						torn |= v[0] ^ v[1]
					}
					return torn
				}, func() {
					s.Update(func(v [2]uint64) [2]uint64 { return [2]uint64{v[0] + 1, v[1] + 1} })
				}
		},
		Pairs: func() func(int) {
			s := new(rwlock.Snapshot[[2]uint64])
			s.Store([2]uint64{1, 1})
			return func(n int) {
				sum := uint64(0)
				for range n {
					v := s.Load()
					sum += v[0] - v[1]
				}
				if sum != 0 {
					panic("bench: torn")
				}
			}
		},
	}
}

//lint:file-ignore SA2001 Locking and unlocking is all there is to measure.

package bench

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/spin"
)

// Reference is the name of the lock that the others are compared with.
const Reference = "sync.Mutex"

// Lock is a kind of lock to measure.
type Lock struct {
	// Name is the Go type, with the policy behind it where the type has several.
	Name string
	// FIFO tells that the lock admits in order of arrival.
	FIFO bool
	// New returns a free lock.
	New func() sync.Locker
	// Pairs returns a loop that locks and unlocks a free lock n times. It is written out for each
	// type. An interface or a type parameter would keep the compiler from inlining the fast path,
	// and a call costs a good part of the time to be measured.
	Pairs func() func(n int)
	// Reentry returns the same for a lock that the caller holds already. It is nil if the lock is
	// not reentrant. The lock stays held.
	Reentry func() func(n int)
}

// Locks returns all locks, Reference first.
func Locks() []Lock {
	return []Lock{
		{
			Name: Reference,
			New:  func() sync.Locker { return new(sync.Mutex) },
			Pairs: func() func(int) {
				m := new(sync.Mutex)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			},
		},
		{
			Name: "fair.Mutex",
			FIFO: true,
			New:  func() sync.Locker { return new(fair.Mutex) },
			Pairs: func() func(int) {
				m := new(fair.Mutex)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			},
		},
		{
			Name: "fair.BargingMutex",
			New:  func() sync.Locker { return new(fair.BargingMutex) },
			Pairs: func() func(int) {
				m := new(fair.BargingMutex)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			},
		},
		{
			Name:    "reentrant.Mutex",
			New:     func() sync.Locker { return new(reentrant.Mutex) },
			Pairs:   func() func(int) { return reentrantPairs(new(reentrant.Mutex)) },
			Reentry: func() func(int) { return reentrantAgain(new(reentrant.Mutex)) },
		},
		{
			Name:    "reentrant.Mutex-FIFO",
			FIFO:    true,
			New:     func() sync.Locker { return reentrant.New(locks.FIFO) },
			Pairs:   func() func(int) { return reentrantPairs(reentrant.New(locks.FIFO)) },
			Reentry: func() func(int) { return reentrantAgain(reentrant.New(locks.FIFO)) },
		},
		{
			Name: "sync.RWMutex",
			New:  func() sync.Locker { return new(sync.RWMutex) },
			Pairs: func() func(int) {
				rw := new(sync.RWMutex)
				return func(n int) {
					for range n {
						rw.Lock()
						rw.Unlock()
					}
				}
			},
		},
		{
			Name: "rwlock.RWMutex",
			New:  func() sync.Locker { return new(rwlock.RWMutex) },
			Pairs: func() func(int) {
				rw := new(rwlock.RWMutex)
				return func(n int) {
					for range n {
						rw.Lock()
						rw.Unlock()
					}
				}
			},
		},
		{
			Name: "rwlock.RWMutex-FIFO",
			FIFO: true,
			New:  func() sync.Locker { return rwlock.New(locks.FIFO) },
			Pairs: func() func(int) {
				rw := rwlock.New(locks.FIFO)
				return func(n int) {
					for range n {
						rw.Lock()
						rw.Unlock()
					}
				}
			},
		},
		{
			Name: "rwlock.StampedLock",
			New:  func() sync.Locker { return new(rwlock.StampedLock).WriteLocker().(sync.Locker) },
			Pairs: func() func(int) {
				l := new(rwlock.StampedLock)
				return func(n int) {
					for range n {
						l.UnlockWrite(l.WriteLock())
					}
				}
			},
		},
		{
			Name: "spin.Mutex",
			New:  func() sync.Locker { return new(spin.Mutex) },
			Pairs: func() func(int) {
				m := new(spin.Mutex)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			},
		},
		{
			Name: "spin.Ticket",
			FIFO: true,
			New:  func() sync.Locker { return new(spin.Ticket) },
			Pairs: func() func(int) {
				m := new(spin.Ticket)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			},
		},
		{
			Name: "spin.MCS",
			FIFO: true,
			New:  func() sync.Locker { return new(spin.MCS) },
			Pairs: func() func(int) {
				m := new(spin.MCS)
				return func(n int) {
					for range n {
						m.Lock()
						m.Unlock()
					}
				}
			},
		},
		{
			Name: "semaphore.Weighted",
			FIFO: true,
			New:  func() sync.Locker { return semaphoreLock{semaphore.NewWeighted(1)} },
			Pairs: func() func(int) {
				s, ctx := semaphore.NewWeighted(1), context.Background()
				return func(n int) {
					for range n {
						_ = s.Acquire(ctx, 1) // Fails only if ctx ends.
						s.Release(1)
					}
				}
			},
		},
		{
			Name: "chan",
			FIFO: true,
			New:  func() sync.Locker { return make(chanLock, 1) },
			Pairs: func() func(int) {
				c := make(chan struct{}, 1)
				return func(n int) {
					for range n {
						c <- struct{}{}
						<-c
					}
				}
			},
		},
	}
}

func reentrantPairs(m *reentrant.Mutex) func(int) {
	return func(n int) {
		for range n {
			m.Lock()
			m.Unlock()
		}
	}
}

func reentrantAgain(m *reentrant.Mutex) func(int) {
	return func(n int) {
		if !m.IsHeld() {
			m.Lock()
		}
		for range n {
			m.Lock()
			m.Unlock()
		}
	}
}

// semaphoreLock is a semaphore of one permit.
type semaphoreLock struct{ s *semaphore.Weighted }

func (l semaphoreLock) Lock() { _ = l.s.Acquire(context.Background(), 1) } // Fails only if ctx ends.

func (l semaphoreLock) Unlock() { l.s.Release(1) }

// chanLock is a channel with room for one.
type chanLock chan struct{}

func (l chanLock) Lock() { l <- struct{}{} }

func (l chanLock) Unlock() { <-l }

package synchronizer_test

import (
	"context"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

// mutexRules: the word is 1 while the lock is held.
type mutexRules struct{}

func (mutexRules) Acquire(w, _ uint64) (uint64, bool) { return 1, w == 0 }
func (mutexRules) Release(w, _ uint64) (uint64, bool) { return 0, w == 1 }

// Mutex is a mutual exclusion lock without an owner: the class Mutex in the documentation of
// Java's AbstractQueuedSynchronizer.
type Mutex struct {
	s synchronizer.Sync[mutexRules]
}

func (m *Mutex) Lock()                                 { m.s.Acquire(1) }
func (m *Mutex) TryLock() bool                         { return m.s.TryAcquire(1) }
func (m *Mutex) LockContext(ctx context.Context) error { return m.s.AcquireContext(ctx, 1) }
func (m *Mutex) IsLocked() bool                        { return m.s.Word() == 1 }

func (m *Mutex) Unlock() {
	if !m.s.Release(1) {
		panic(locks.ErrNotHeld)
	}
}

func ExampleSync_mutex() {
	var _ synchronizer.Rules = mutexRules{}
	var m Mutex
	m.Lock()
	fmt.Println(m.TryLock(), m.IsLocked())
	m.Unlock()
	fmt.Println(m.TryLock(), m.IsLocked())
	// Output:
	// false true
	// true true
}

package idioms

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/synchronizer"
)

// LockSupport: the permit. unpark makes it available, and park waits for it and takes it.
type permitRules struct{}

func (permitRules) Acquire(w, _ uint64) (uint64, bool) { return 0, w == 1 }
func (permitRules) Release(_, _ uint64) (uint64, bool) { return 1, true }

type permit struct {
	s synchronizer.Sync[permitRules]
}

func (p *permit) Park()   { p.s.Acquire(0) }
func (p *permit) Unpark() { p.s.Release(0) }

// LockSupport.park: while (!canProceed()) { ... LockSupport.park(this); }
func TestPermitThatComesFirstIsNotLost(t *testing.T) {
	var p permit
	var canProceed atomic.Bool
	canProceed.Store(true)
	p.Unpark()
	p.Unpark() // makes no second permit
	for !canProceed.Load() {
		p.Park()
	}
	p.Park()
	require.Zero(t, p.s.Word())
}

// LockSupport: class FIFOMutex
type FIFOMutex struct {
	locked  atomic.Bool
	guard   sync.Mutex // of the queue, a ConcurrentLinkedQueue in Java
	waiters []*permit
}

func (m *FIFOMutex) Lock() {
	current := new(permit)
	m.guard.Lock()
	m.waiters = append(m.waiters, current)
	m.guard.Unlock()
	for m.peek() != current || !m.locked.CompareAndSwap(false, true) {
		current.Park()
	}
	m.guard.Lock()
	m.waiters = m.waiters[1:]
	m.guard.Unlock()
}

func (m *FIFOMutex) Unlock() {
	m.locked.Store(false)
	if first := m.peek(); first != nil {
		first.Unpark()
	}
}

func (m *FIFOMutex) peek() *permit {
	m.guard.Lock()
	defer m.guard.Unlock()
	if len(m.waiters) == 0 {
		return nil
	}
	return m.waiters[0]
}

func TestFIFOMutexAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m FIFOMutex
		var order []int
		m.Lock()
		for i := range 10 {
			go func() {
				m.Lock()
				order = append(order, i)
				m.Unlock()
			}()
			synctest.Wait()
		}
		m.Unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	})
}

// AbstractQueuedSynchronizer: class Mutex implements Lock, with its class Sync
type mutexSync struct{}

func (mutexSync) Acquire(w, _ uint64) (uint64, bool) { return 1, w == 0 } // tryAcquire
func (mutexSync) Release(w, _ uint64) (uint64, bool) { return 0, w == 1 } // tryRelease

type Mutex struct{ sync synchronizer.Sync[mutexSync] }

func (m *Mutex) Lock()         { m.sync.Acquire(1) }
func (m *Mutex) Unlock()       { m.sync.Release(1) }
func (m *Mutex) TryLock() bool { return m.sync.TryAcquire(1) }
func (m *Mutex) IsLocked() bool {
	return m.sync.Word() == 1 // isHeldExclusively, which conditions ask
}

func TestMutexOfRulesHasConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Mutex
		c := condition.New(&m) // newCondition
		woken := 0
		for range 3 {
			go func() {
				m.Lock()
				defer m.Unlock()
				c.Wait()
				woken++
			}()
		}
		synctest.Wait()
		require.True(t, m.TryLock())
		c.Signal()
		require.Zero(t, woken, "the lock is held")
		m.Unlock()
		synctest.Wait()
		require.Equal(t, 1, woken)
		m.Lock()
		c.Broadcast()
		m.Unlock()
		synctest.Wait()
		require.Equal(t, 3, woken)
		require.Panics(t, c.Signal, "without the lock")
	})
}

// AbstractQueuedSynchronizer: class BooleanLatch
type latchSync struct{}

func (latchSync) Acquire(w, _ uint64) (uint64, bool) { return w, w != 0 } // tryAcquireShared
func (latchSync) Release(_, _ uint64) (uint64, bool) { return 1, true }   // tryReleaseShared

type BooleanLatch struct{ sync synchronizer.Sync[latchSync] }

func (l *BooleanLatch) IsSignalled() bool { return l.sync.Word() != 0 }
func (l *BooleanLatch) Signal()           { l.sync.Release(1) }
func (l *BooleanLatch) Await()            { l.sync.Acquire(1) }

func TestOneSignalOpensTheLatchForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l BooleanLatch
		through := new(atomic.Int64)
		for range 4 {
			go func() { l.Await(); through.Add(1) }()
		}
		synctest.Wait()
		require.False(t, l.IsSignalled())
		require.Zero(t, through.Load())
		l.Signal()
		synctest.Wait()
		require.EqualValues(t, 4, through.Load())
		l.Await()
	})
}

// AbstractQueuedSynchronizer.hasQueuedPredecessors: if (hasQueuedPredecessors()) return false; else
// { // try to acquire normally }. The policy FIFO is this line.
func TestFairTryStaysBehindQueuedPredecessors(t *testing.T) {
	for _, p := range []locks.Policy{locks.FIFO, locks.NonFair} {
		synctest.Test(t, func(t *testing.T) {
			s := synchronizer.New(countingSync{}, 1, p)
			go s.Acquire(2)
			synctest.Wait()
			require.True(t, s.HasQueued())
			require.Equal(t, p == locks.NonFair, s.TryAcquire(1))
			s.Release(2)
			synctest.Wait()
		})
	}
}

// countingSync is a semaphore's.
type countingSync struct{}

func (countingSync) Acquire(free, n uint64) (uint64, bool) { return free - n, free >= n }
func (countingSync) Release(free, n uint64) (uint64, bool) { return free + n, true }

package idioms

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/reentrant"
)

// Lock: l.lock(); try { ... } finally { l.unlock(); }
func TestSectionUnlocksHoweverItEnds(t *testing.T) {
	var l reentrant.Mutex
	access := func() {
		l.Lock()
		defer l.Unlock()
		panic("the section fails")
	}
	require.Panics(t, access)
	require.False(t, l.IsLocked())

	// The same in one call, which also releases a lock on a store.
	require.Panics(t, func() { _ = locks.Do(t.Context(), &l, panics) })
	require.False(t, l.IsLocked())
}

// Lock: if (lock.tryLock()) { try { ... } finally { lock.unlock(); } } else { ... }
func TestBusyLockLeadsToTheAlternative(t *testing.T) {
	var l reentrant.Mutex
	manipulate := func() string {
		if !l.TryLock() {
			return "alternative"
		}
		defer l.Unlock()
		return "manipulated"
	}
	require.Equal(t, "manipulated", manipulate())
	release := holdElsewhere(t, &l)
	require.Equal(t, "alternative", manipulate())
	release()
}

// Condition: class BoundedBuffer<E>
type BoundedBuffer[E any] struct {
	lock                  reentrant.Mutex
	notFull, notEmpty     *condition.Cond
	items                 []E
	putptr, takeptr, full int
}

func NewBoundedBuffer[E any](size int) *BoundedBuffer[E] {
	b := &BoundedBuffer[E]{items: make([]E, size)}
	b.notFull, b.notEmpty = b.lock.NewCond(), b.lock.NewCond()
	return b
}

func (b *BoundedBuffer[E]) Put(x E) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for b.full == len(b.items) {
		b.notFull.Wait()
	}
	b.items[b.putptr] = x
	b.putptr = (b.putptr + 1) % len(b.items)
	b.full++
	b.notEmpty.Signal()
}

func (b *BoundedBuffer[E]) Take() E {
	b.lock.Lock()
	defer b.lock.Unlock()
	for b.full == 0 {
		b.notEmpty.Wait()
	}
	x := b.items[b.takeptr]
	b.takeptr = (b.takeptr + 1) % len(b.items)
	b.full--
	b.notFull.Signal()
	return x
}

func TestBoundedBufferKeepsOrderAndBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBoundedBuffer[int](3)
		put := 0
		go func() {
			for ; put < 10; put++ {
				b.Put(put)
			}
		}()
		synctest.Wait()
		require.Equal(t, 3, put, "the fourth Put waits")
		for i := range 10 {
			require.Equal(t, i, b.Take())
		}
	})
}

// Condition.awaitNanos: boolean aMethod(long timeout, TimeUnit unit)
func TestWaitThatLoopsKeepsItsTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock reentrant.Mutex
		theCondition, satisfied := lock.NewCond(), false
		aMethod := func(timeout time.Duration) bool {
			lock.Lock()
			defer lock.Unlock()
			for !satisfied {
				if timeout <= 0 {
					return false
				}
				timeout = theCondition.WaitFor(timeout)
			}
			return true
		}
		go func() {
			for range 3 { // signals that do not satisfy it
				time.Sleep(time.Second)
				lock.Lock()
				theCondition.Signal()
				lock.Unlock()
			}
		}()
		began := time.Now()
		require.False(t, aMethod(10*time.Second))
		require.Equal(t, 10*time.Second, time.Since(began))
		satisfied = true
		require.True(t, aMethod(0))
	})
}

// Condition.awaitUntil: boolean aMethodWithDeadline(Date deadline)
func TestWaitThatLoopsKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock reentrant.Mutex
		theCondition, satisfied := lock.NewCond(), false
		aMethodWithDeadline := func(deadline time.Time) bool {
			stillWaiting := true
			lock.Lock()
			defer lock.Unlock()
			for !satisfied {
				if !stillWaiting {
					return false
				}
				stillWaiting = theCondition.WaitUntil(deadline)
			}
			return true
		}
		began := time.Now()
		require.False(t, aMethodWithDeadline(began.Add(time.Minute)))
		require.Equal(t, time.Minute, time.Since(began))
		time.AfterFunc(time.Second, func() {
			lock.Lock()
			defer lock.Unlock()
			satisfied = true
			theCondition.Signal()
		})
		require.True(t, aMethodWithDeadline(time.Now().Add(time.Minute)))
	})
}

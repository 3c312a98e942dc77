package idioms

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/reentrant"
)

func panics(context.Context) error { panic("the section fails") }

// holdElsewhere has another goroutine hold l until release is called.
func holdElsewhere(t *testing.T, l interface {
	Lock()
	Unlock()
}) (release func()) {
	t.Helper()
	held, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.Lock()
		defer l.Unlock()
		close(held)
		<-end
	}()
	<-held
	return func() { close(end); <-ended }
}

// ReentrantLock: class X { void m() }
type X struct {
	lock reentrant.Mutex
	n    int
}

func (x *X) M(depth int) {
	x.lock.Lock()
	defer x.lock.Unlock()
	if x.n++; depth > 1 {
		x.M(depth - 1) // the holder enters again
	}
}

func TestMethodCallsItselfUnderItsLock(t *testing.T) {
	var x X
	x.M(5)
	require.Equal(t, 5, x.n)
	require.False(t, x.lock.IsLocked())
}

// ReentrantLock.getHoldCount: assert lock.getHoldCount() == 0; lock.lock();
func TestHoldCountTellsWhetherTheCallerHolds(t *testing.T) {
	var lock reentrant.Mutex
	require.Zero(t, lock.HoldCount())
	lock.Lock()
	require.Equal(t, 1, lock.HoldCount())
	lock.Unlock()
	release := holdElsewhere(t, &lock)
	require.Zero(t, lock.HoldCount(), "the hold is another goroutine's")
	release()
}

// ReentrantLock.isHeldByCurrentThread: assert lock.isHeldByCurrentThread();
func TestHelperAssertsThatItsCallerHoldsTheLock(t *testing.T) {
	var lock reentrant.Mutex
	helper := func() { lock.AssertHeld() }
	locktest.PanicsWith(t, locks.ErrNotHeld, helper)
	lock.Lock()
	defer lock.Unlock()
	require.NotPanics(t, helper)
}

// ReentrantLock.isHeldByCurrentThread: assert !lock.isHeldByCurrentThread(); lock.lock();
func TestMethodIsRefusedASecondEntry(t *testing.T) {
	var lock reentrant.Mutex
	var m func(depth int)
	m = func(depth int) {
		if lock.IsHeld() {
			panic("m is not reentrant")
		}
		lock.Lock()
		defer lock.Unlock()
		if depth > 1 {
			m(depth - 1)
		}
	}
	require.NotPanics(t, func() { m(1) })
	require.Panics(t, func() { m(2) })
}

// ReentrantLock.tryLock: if (lock.tryLock() || lock.tryLock(timeout, unit)) { ... }, and
// tryLock(0, SECONDS), which honors the fairness setting
func TestTryWithoutTimeHonoursTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := reentrant.New(locks.FIFO)
		lock.Lock()
		go func() {
			lock.Lock()
			defer lock.Unlock()
		}()
		synctest.Wait()
		tries := func() (barging, inTurn bool) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				if barging = lock.TryLock(); barging {
					lock.Unlock()
				}
				if inTurn = lock.TryLockFor(0); inTurn {
					lock.Unlock()
				}
			}()
			<-done
			return
		}
		barging, inTurn := tries()
		require.False(t, barging || inTurn, "held")
		lock.Unlock()
		synctest.Wait()
		barging, inTurn = tries()
		require.True(t, barging && inTurn, "free, and nobody waits")
	})
}

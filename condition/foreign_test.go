package condition_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/test/locktest"
)

// pickyLock is a foreign lock whose methods panic if the test sets them a function that panics.
type pickyLock struct {
	chanLock
	unlock, lock func() // called first, if not nil
}

func newPickyLock() *pickyLock { return &pickyLock{chanLock: make(chanLock, 1)} }

func (l *pickyLock) Lock() {
	if l.lock != nil {
		l.lock()
	}
	l.chanLock.Lock()
}

func (l *pickyLock) Unlock() {
	if l.unlock != nil {
		l.unlock()
	}
	l.chanLock.Unlock()
}

var errPicky = errors.New("picky")

// waits are the ways to wait, by name. Each waits for ever, or for long.
var waits = map[string]func(c *condition.Cond){
	"Wait":    func(c *condition.Cond) { c.Wait() },
	"WaitFor": func(c *condition.Cond) { c.WaitFor(time.Hour) },
	"WaitContext": func(c *condition.Cond) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_ = c.WaitContext(ctx)
	},
}

func TestAFailedForeignReleaseLeavesTheQueue(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPickyLock()
				c := condition.New(l)
				l.unlock = func() { panic(errPicky) }
				require.PanicsWithValue(t, errPicky, func() { wait(c) })
				require.False(t, c.HasWaiters())

				l.unlock = nil
				var wg sync.WaitGroup
				wg.Go(func() {
					l.Lock()
					c.Wait()
					l.Unlock()
				})
				synctest.Wait()
				c.Signal() // must go to this waiter, not to the goroutine that has panicked
				wg.Wait()
			})
		})
	}
}

// A goroutine is in the condition's queue before its Unlock fails. In between, the signal of
// another goroutine may go to it.
func TestAFailedForeignReleaseHandsItsSignalOn(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPickyLock()
				c := condition.New(l)
				l.unlock = func() {
					l.unlock = nil
					var wg sync.WaitGroup
					wg.Go(func() {
						l.Lock()
						c.Wait()
						l.Unlock()
					})
					synctest.Wait()
					c.Signal()
					require.Equal(t, 1, c.WaitQueueLength())
					panic(errPicky)
				}
				require.PanicsWithValue(t, errPicky, func() { wait(c) })
				synctest.Wait() // the other goroutine has left, or the bubble ends in a deadlock
				require.False(t, c.HasWaiters())
			})
		})
	}
}

func TestAFailedReacquisitionDoesNotDelayTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPickyLock()
		c := condition.New(l)
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				l.Lock()
				if i == 0 {
					require.PanicsWithValue(t, errPicky, c.Wait)
					return
				}
				c.Wait()
				l.Unlock()
			})
			synctest.Wait()
		}
		l.lock = func() { l.lock = nil; panic(errPicky) }
		c.Broadcast()
		wg.Wait()
	})
}

// tellingLock is a foreign lock that tells whether it is held.
type tellingLock struct{ chanLock }

func (l tellingLock) IsLocked() bool { return len(l.chanLock) > 0 }

func TestAForeignLockWithIsLockedRefusesStrangers(t *testing.T) {
	l := tellingLock{make(chanLock, 1)}
	c := condition.New(l)
	locktest.PanicsWith(t, locks.ErrNotHeld, c.Wait)
	locktest.PanicsWith(t, locks.ErrNotHeld, c.Signal)
	require.ErrorIs(t, c.WaitContext(t.Context()), locks.ErrNotHeld)
	l.Lock()
	require.False(t, c.HasWaiters())
	require.LessOrEqual(t, c.WaitFor(time.Millisecond), time.Duration(0))
	l.Unlock()
}

// As with sync.Cond, a goroutine can signal without a lock of this kind. A waiter that was
// signalled before waits for the lock, which the signalling goroutine still holds.
func TestAFailedForeignReleaseWaitsForNobody(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPickyLock()
				c := condition.New(l)
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						l.Lock()
						c.Wait()
						l.Unlock()
					})
					synctest.Wait()
				}
				l.Lock()
				c.Signal()
				l.unlock = func() {
					l.unlock = nil
					c.Signal() // for the second
					c.Signal() // for the goroutine that is about to wait
					panic(errPicky)
				}
				panicked := make(chan any)
				go func() {
					defer func() { panicked <- recover() }()
					wait(c)
				}()
				select {
				case p := <-panicked:
					require.Equal(t, errPicky, p)
				case <-time.After(time.Minute):
					t.Error("it hangs")
					l.Unlock()
					<-panicked
					return
				}
				l.Unlock()
				wg.Wait()
			})
		})
	}
}

func TestAFailedForeignReleaseDelaysNobody(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPickyLock()
				c := condition.New(l)
				var wg sync.WaitGroup
				waiter := func() {
					wg.Go(func() {
						l.Lock()
						c.Wait()
						l.Unlock()
					})
					synctest.Wait()
				}
				waiter()
				l.Lock()
				l.unlock = func() {
					l.unlock = nil
					c.Signal() // for the waiter
					c.Signal() // for the goroutine that is about to wait, which comes back behind the waiter
					l.Unlock()
					wg.Wait()
					synctest.Wait()
					panic(errPicky)
				}
				require.PanicsWithValue(t, errPicky, func() { wait(c) })

				waiter()
				c.Signal()
				wg.Wait()
				require.False(t, c.HasWaiters())
			})
		})
	}
}

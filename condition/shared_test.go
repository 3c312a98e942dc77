package condition_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/named"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

// ownedLock has the methods that all locks with owners share.
type ownedLock interface {
	locks.TryLocker
	NewCond() *condition.Cond
	QueueLength() int
	IsLocked() bool
}

// rwWrites is the write side of an RWMutex.
type rwWrites struct{ *rwlock.RWMutex }

func (w rwWrites) IsLocked() bool { return w.IsWriteLocked() }

// ownedLocks runs f in a bubble with a lock of each kind that knows its owner.
func ownedLocks(t *testing.T, f func(t *testing.T, l ownedLock)) {
	for name, newLock := range map[string]func() ownedLock{
		"reentrant":      func() ownedLock { return new(reentrant.Mutex) },
		"reentrant-FIFO": func() ownedLock { return reentrant.New(locks.FIFO) },
		"rwlock":         func() ownedLock { return rwWrites{new(rwlock.RWMutex)} },
		"rwlock-FIFO":    func() ownedLock { return rwWrites{rwlock.New(locks.FIFO)} },
		"named":          func() ownedLock { return new(named.Provider).Locker("a").(ownedLock) },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, newLock()) }) })
	}
}

func TestAWaitNeverGivesUpAnotherGoroutinesHold(t *testing.T) {
	ownedLocks(t, func(t *testing.T, l ownedLock) {
		c := l.NewCond()
		o := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, l.LockContext(o))
		var wg sync.WaitGroup
		wg.Go(func() {
			require.NoError(t, l.LockContext(o))
			err := c.WaitContext(o)
			require.ErrorIs(t, err, condition.ErrSharedHolds)
			require.ErrorContains(t, err, "condition: WaitContext: ")
			require.NoError(t, l.UnlockContext(o))
		})
		wg.Wait()
		require.True(t, l.IsLocked(), "the other goroutine's hold is as before")
		require.NoError(t, l.UnlockContext(o))
		require.False(t, l.IsLocked())
	})
}

func TestAWaiterGivesUpSeveralOwnHolds(t *testing.T) {
	ownedLocks(t, func(t *testing.T, l ownedLock) {
		c := l.NewCond()
		o, other := locks.WithOwner(t.Context(), locks.NewOwner()), locks.WithOwner(t.Context(), locks.NewOwner())
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 3 {
				require.NoError(t, l.LockContext(o))
			}
			require.NoError(t, c.WaitContext(o))
			for range 3 {
				require.NoError(t, l.UnlockContext(o))
			}
		})
		synctest.Wait()
		require.False(t, l.IsLocked())
		require.NoError(t, l.LockContext(other))
		require.NoError(t, c.SignalContext(other))
		require.NoError(t, l.UnlockContext(other))
		wg.Wait()
		require.False(t, l.IsLocked())
	})
}

func TestAContextWhoseDoneFailsKeepsAllHolds(t *testing.T) {
	ownedLocks(t, func(t *testing.T, l ownedLock) {
		c := l.NewCond()
		for _, o := range []locks.Owner{locks.NewOwner(), 0} {
			locktest.Fails(t, t.Context(), func(failing context.Context) {
				ctx := t.Context()
				if o != 0 {
					ctx, failing = locks.WithOwner(ctx, o), locks.WithOwner(failing, o)
				}
				for range 3 {
					require.NoError(t, l.LockContext(ctx))
				}
				defer func() {
					for range 3 {
						assert.NoError(t, l.UnlockContext(ctx))
					}
					assert.False(t, l.IsLocked())
				}()
				_ = c.WaitContext(failing)
			})
		}
	})
}

func TestAHoldThatMovedBetweenGoroutinesMayWait(t *testing.T) {
	ownedLocks(t, func(t *testing.T, l ownedLock) {
		c := l.NewCond()
		o := locks.WithOwner(t.Context(), locks.NewOwner())
		inAnother(func() { require.NoError(t, l.LockContext(o)) })
		ctx, cancel := context.WithTimeout(o, time.Second)
		defer cancel()
		require.ErrorIs(t, c.WaitContext(ctx), context.DeadlineExceeded)
		require.True(t, l.IsLocked())
		inAnother(func() { require.NoError(t, l.UnlockContext(o)) })
		require.False(t, l.IsLocked())
	})
}

// waitEnds are the ways in which a wait ends.
var waitEnds = map[string]func(c *condition.Cond, o context.Context, cancel func()) error{
	"signal": func(c *condition.Cond, o context.Context, _ func()) error { return c.SignalContext(o) },
	"broadcast": func(c *condition.Cond, o context.Context, _ func()) error {
		return c.BroadcastContext(o)
	},
	"cancellation": func(_ *condition.Cond, _ context.Context, cancel func()) error { cancel(); return nil },
}

func TestAWaitersOwnerThatHoldsReadmitsIt(t *testing.T) {
	for end, f := range waitEnds {
		t.Run(end, func(t *testing.T) {
			ownedLocks(t, func(t *testing.T, l ownedLock) {
				c := l.NewCond()
				o := locks.WithOwner(t.Context(), locks.NewOwner())
				ctx, cancel := context.WithCancel(o)
				defer cancel()
				back := make(chan struct{})
				go func() {
					defer close(back)
					require.NoError(t, l.LockContext(o))
					_ = c.WaitContext(ctx)
				}()
				synctest.Wait()
				require.NoError(t, l.LockContext(o))
				require.NoError(t, f(c, o, cancel))
				<-back // with this goroutine's hold still there
				require.NoError(t, l.UnlockContext(o))
				require.True(t, l.IsLocked(), "the waiter's own hold is left")
				require.NoError(t, l.UnlockContext(o))
				require.ErrorIs(t, l.UnlockContext(o), locks.ErrNotHeld)
			})
		})
	}
}

func TestSignalledWaitersOfOneOwnerAllComeBack(t *testing.T) {
	ownedLocks(t, func(t *testing.T, l ownedLock) {
		c := l.NewCond()
		o := locks.WithOwner(t.Context(), locks.NewOwner())
		back := make(chan struct{}, 2)
		for range 2 {
			go func() {
				require.NoError(t, l.LockContext(o))
				require.NoError(t, c.WaitContext(o))
				require.NoError(t, l.UnlockContext(o))
				back <- struct{}{}
			}()
			synctest.Wait()
		}
		for range 2 {
			require.NoError(t, l.LockContext(o))
			require.NoError(t, c.SignalContext(o))
			require.NoError(t, l.UnlockContext(o))
			<-back
		}
		require.False(t, l.IsLocked())
	})
}

func TestASignalReturnsOneOwnersWaitersTogether(t *testing.T) {
	ownedLocks(t, func(t *testing.T, l ownedLock) {
		c := l.NewCond()
		o, other := locks.WithOwner(t.Context(), locks.NewOwner()), locks.WithOwner(t.Context(), locks.NewOwner())
		var inside sync.WaitGroup
		inside.Add(2)
		done := make(chan struct{}, 2)
		for range 2 {
			go func() {
				require.NoError(t, l.LockContext(o))
				require.NoError(t, c.WaitContext(o))
				inside.Done()
				inside.Wait() // each waiter unlocks only when the other waiter is back too
				require.NoError(t, l.UnlockContext(o))
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		require.NoError(t, l.LockContext(other))
		require.NoError(t, c.BroadcastContext(other))
		require.NoError(t, l.UnlockContext(other))
		<-done
		<-done
		require.False(t, l.IsLocked())
	})
}

// doneOnly is a context of another package: its Done channel is closed, and its Err returns nil.
type doneOnly struct {
	context.Context
	done chan struct{}
}

func (d doneOnly) Done() <-chan struct{} { return d.done }

func TestADoneContextWithoutErrorMeansCancelled(t *testing.T) {
	for name, l := range map[string]interface {
		locks.Locker
		NewCond() *condition.Cond
	}{
		"fair": new(fair.Mutex), "barging": new(fair.BargingMutex),
		"reentrant": new(reentrant.Mutex), "rwlock": new(rwlock.RWMutex),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := doneOnly{t.Context(), make(chan struct{})}
			close(ctx.done)
			inAnother(func() { require.NoError(t, l.LockContext(t.Context())) })
			err := l.LockContext(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, locks.ErrDeadlock)
			require.NotContains(t, err.Error(), "nil")
		})
		t.Run(name+" condition", func(t *testing.T) {
			l := new(fair.Mutex)
			c := l.NewCond()
			ctx := doneOnly{t.Context(), make(chan struct{})}
			close(ctx.done)
			l.Lock()
			defer l.Unlock()
			err := c.WaitContext(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.NotContains(t, err.Error(), "nil")
		})
	}
}

// countingMutex embeds a lock of this module, and overrides its methods.
type countingMutex struct {
	fair.Mutex
	locked, unlocked int
}

func (m *countingMutex) Lock()   { m.Mutex.Lock(); m.locked++ }
func (m *countingMutex) Unlock() { m.unlocked++; m.Mutex.Unlock() }

func TestAConditionUsesTheMethodsOfAWrapper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(countingMutex)
		c := condition.New(m)
		var wg sync.WaitGroup
		wg.Go(func() {
			m.Lock()
			c.Wait()
			m.Unlock()
		})
		synctest.Wait()
		m.Lock()
		c.Signal()
		m.Unlock()
		wg.Wait()
		require.Equal(t, 3, m.locked)
		require.Equal(t, 3, m.unlocked)
	})
}

// inAnother runs f in another goroutine, and waits for it.
func inAnother(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

package rwlock_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

// The tests of package condition for every lock are not repeated here.

func TestAWaitRestoresAllWriteHolds(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		c := rw.NewCond()
		for name, wait := range map[string]func(){
			"signal": c.Wait,
			"time":   func() { c.WaitFor(time.Minute) },
			"context": func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				assert.ErrorIs(t, c.WaitContext(ctx), context.DeadlineExceeded)
			},
		} {
			var holds int
			w := locktest.Start(func() (bool, error) {
				for range 3 {
					rw.Lock()
				}
				wait()
				holds = rw.WriteHoldCount()
				for range holds {
					rw.Unlock()
				}
				return true, nil
			}, nil)
			require.False(t, rw.IsWriteLocked(), name)
			r := reads(rw)
			require.True(t, r.Back, "the lock is free while it waits")
			if name == "signal" {
				r.end()
				rw.Lock()
				require.Equal(t, 1, rw.WaitQueueLength(c))
				require.True(t, rw.HasWaiters(c))
				c.Signal()
				require.Equal(t, []locks.Owner{w.ID}, rw.Queued())
				rw.Unlock()
			} else {
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []locks.Owner{w.ID}, rw.Queued(), "it needs the lock to return")
				require.False(t, w.Back)
				r.end()
			}
			synctest.Wait()
			require.True(t, w.Back, name)
			require.Equal(t, 3, holds, name)
		}
	})
}

func TestAWriterThatReadsCannotWait(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		c := rw.NewCond()
		w := locktest.Start(func() (bool, error) { rw.Lock(); defer rw.Unlock(); c.Wait(); return true, nil }, nil)
		rw.Lock()
		rw.RLock()
		for range 2 {
			locktest.PanicsWith(t, locks.ErrUpgrade, c.Wait)
			locktest.PanicsWith(t, locks.ErrUpgrade, func() { c.WaitFor(time.Hour) })
			locktest.PanicsWith(t, locks.ErrUpgrade, func() { c.WaitUntil(time.Now()) })
			require.ErrorIs(t, c.WaitContext(t.Context()), locks.ErrUpgrade)
			require.ErrorIs(t, c.WaitWhile(t.Context(), func() bool { return true }), locks.ErrUpgrade)
			require.Equal(t, []locks.Owner{w.ID}, c.Waiters())
			require.Equal(t, 1, rw.WriteHoldCount())
			require.Equal(t, 1, rw.ReadHoldCount())
		}
		c.Signal() // is allowed
		rw.Unlock()
		locktest.PanicsWith(t, locks.ErrNotHeld, c.Wait) // only reads
		locktest.PanicsWith(t, locks.ErrNotHeld, c.Signal)
		locktest.PanicsWith(t, locks.ErrNotHeld, func() { rw.HasWaiters(c) })
		locktest.PanicsWith(t, locks.ErrForeign, func() { rw.HasWaiters(nil) })
		locktest.PanicsWith(t, locks.ErrForeign, func() { rw.HasWaiters(new(rwlock.RWMutex).NewCond()) })
		rw.RUnlock()
		synctest.Wait()
		require.True(t, w.Back)
	})
}

func TestAWaiterReacquiresAReaderBiasedLock(t *testing.T) {
	for _, others := range []string{"none", "inside", "gone"} {
		t.Run("readers "+others, func(t *testing.T) {
			policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
				c := rw.NewCond()
				w := locktest.Start(func() (bool, error) {
					rw.Lock()
					defer rw.Unlock()
					return c.WaitUntil(time.Now().Add(time.Minute)), nil
				}, nil)
				var r holder
				if others != "none" {
					r = reads(rw)
				}
				if others == "gone" {
					r.end()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if others == "inside" {
					require.False(t, w.Back)
					require.False(t, rw.TryRLockFor(0), "new readers wait behind it")
					r.end()
				}
				require.True(t, w.Back)
				require.False(t, w.OK)
			})
		})
	}
}

func TestWaitsAmongManyReadersLoseNoSignal(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			const rounds = 200
			c := rw.NewCond()
			var items, taken int // guarded by rw
			var stop atomic.Bool
			var wg, bg sync.WaitGroup
			for range 2 {
				bg.Go(func() {
					for !stop.Load() {
						rw.RLock()
						assert.GreaterOrEqual(t, items, 0)
						rw.RUnlock()
						runtime.Gosched() // else nothing but this happens for 10 ms, where there is one processor
					}
				})
			}
			for range 2 {
				wg.Go(func() {
					for range rounds {
						rw.Lock()
						for items == 0 {
							c.Wait()
						}
						items--
						taken++
						rw.Unlock()
					}
				})
				wg.Go(func() {
					for i := range rounds {
						rw.Lock()
						items++
						c.Signal()
						if i%2 == 0 {
							rw.Downgrade()
							rw.RUnlock()
						} else {
							rw.Unlock()
						}
					}
				})
			}
			within(t, &wg, rw)
			stop.Store(true)
			bg.Wait()
			require.Equal(t, 2*rounds, taken)
			isFree(t, rw)
		})
	})
}

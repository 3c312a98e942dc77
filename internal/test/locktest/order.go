package locktest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/effort"
)

// lineUp holds l, and queues n waiters one after the other. It returns a function for each waiter
// that cancels it, and the order in which they got in, which may be read after synctest.Wait.
// Even waiters are cancelled by their contexts, odd waiters by their time limits.
func lineUp(t *testing.T, l Lock, n int) (cancel []func(), got *[]int) {
	l.Lock()
	got = new([]int)
	for i := range n {
		in := func() { *got = append(*got, i); l.Unlock() }
		if i%2 == 0 {
			ctx, stop := context.WithCancel(t.Context())
			Start(LockingContext(l, ctx), in)
			cancel = append(cancel, stop)
		} else {
			d := time.Duration(i) * time.Hour
			Start(LockingFor(l, d), in)
			cancel = append(cancel, func() { time.Sleep(d) })
		}
		require.Equal(t, i+1, l.QueueLength())
	}
	return cancel, got
}

// Order checks in which order waiters are admitted, without and with goroutines that barge.
var Order = []Situation{
	{"waiters get in in the order in which they came", bubble(func(t *testing.T, l Lock, k Kind) {
		const n = 50
		_, got := lineUp(t, l, n)
		l.Unlock()
		synctest.Wait()
		require.Len(t, *got, n)
		require.IsIncreasing(t, *got)
	})},
	{"waiters that give up leave the order of the others", bubble(func(t *testing.T, l Lock, k Kind) {
		cancel, got := lineUp(t, l, 10)
		for _, i := range []int{4, 6, 3} { // alone, and with a neighbour; 3 takes 1 with it
			cancel[i]()
			synctest.Wait()
		}
		require.Equal(t, 6, l.QueueLength())
		l.Unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 2, 5, 7, 8, 9}, *got)
	})},
	{"after the first gives up, the second waiter is next", bubble(func(t *testing.T, l Lock, k Kind) {
		cancel, got := lineUp(t, l, 4)
		cancel[0]()
		synctest.Wait()
		require.Equal(t, 3, l.QueueLength())
		l.Unlock()
		synctest.Wait()
		require.Equal(t, []int{1, 2, 3}, *got)
	})},
	{"a newcomer takes the place of a cancelled last waiter", bubble(func(t *testing.T, l Lock, k Kind) {
		cancel, got := lineUp(t, l, 3)
		cancel[2]()
		synctest.Wait()
		Start(Locking(l), func() { *got = append(*got, 99); l.Unlock() })
		l.Unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 99}, *got)
	})},
	{"waiters that all give up leave a usable lock", bubble(func(t *testing.T, l Lock, k Kind) {
		cancel, got := lineUp(t, l, 6)
		for _, c := range cancel {
			c()
		}
		synctest.Wait()
		require.Zero(t, l.QueueLength())
		require.False(t, l.HasQueued())
		l.Unlock()
		synctest.Wait()
		require.Empty(t, *got)
	})},
	{"a head that gave up before its release is skipped", bubble(func(t *testing.T, l Lock, k Kind) {
		for range 50 {
			l.Lock()
			ctx, cancel := context.WithCancel(t.Context())
			Start(LockingContext(l, ctx), l.Unlock)
			second := Start(Locking(l), l.Unlock)
			cancel()   // wakes the first, which has not left the queue yet
			l.Unlock() // when the lock is released, most of the time for it
			synctest.Wait()
			if !second.OK {
				require.NoError(t, l.LockContext(t.Context())) // so that the bubble can end
				l.Unlock()
			}
			require.True(t, second.OK)
		}
	})},
	{"a head that gives up during its release is skipped", func(t *testing.T, k Kind) {
		// The release and the cancellation race: whichever wins, the second waiter gets in.
		l := k.New()
		for range 500 {
			l.Lock()
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() {
				if l.LockContext(ctx) == nil {
					l.Unlock()
				}
			})
			Await(t, func() bool { return l.QueueLength() == 1 }, "the first")
			wg.Go(func() { l.Lock(); l.Unlock() }) //nolint:staticcheck // empty on purpose
			Await(t, func() bool { return l.QueueLength() == 2 }, "the second")
			wg.Go(cancel)
			l.Unlock()
			wg.Wait()
			require.False(t, l.HasQueued())
		}
		Works(t, l)
	}},
	{"no barger gets between a release and the first waiter", func(t *testing.T, k Kind) {
		barged := false
		for range 500 {
			synctest.Test(t, func(t *testing.T) {
				l := k.New()
				l.Lock()
				Start(Locking(l), l.Unlock)
				l.Unlock()
				if l.TryLock() { // free only if the waiter was there before
					barged = barged || l.HasQueued()
					l.Unlock()
				}
			})
			if barged {
				break
			}
		}
		require.Equal(t, !k.FIFO, barged, "and of a non-fair one a barger may")
	}},
	{"a waiter gets in past bargers that never stop", func(t *testing.T, k Kind) {
		l := k.New()
		var stop atomic.Bool
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for !stop.Load() {
					l.Lock()
					for range 50 {
						_ = rand.Int()
					}
					l.Unlock()
				}
			})
		}
		for range 50 {
			got := l.TryLockFor(20 * time.Second)
			if !assert.True(t, got) {
				break
			}
			l.Unlock()
		}
		stop.Store(true)
		wg.Wait()
		Works(t, l)
	}},
	{"a waiter gets in past a constant barger", func(t *testing.T, k Kind) {
		if k.FIFO {
			// Here no goroutine barges: TryLock right behind Unlock must fail at once.
			synctest.Test(t, func(t *testing.T) {
				l := k.New()
				l.Lock()
				w := Start(Locking(l), l.Unlock)
				l.Unlock()
				synctest.Wait()
				require.True(t, w.OK)
				Works(t, l)
			})
			return
		}
		// Inside the bubble the time stands still, so the bound is a number of races.
		synctest.Test(t, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			l := k.New()
			l.Lock()
			w := Start(Locking(l), nil)
			races := 0
			for ; races < 1000; races++ {
				l.Unlock()
				if !l.TryLock() {
					break
				}
				synctest.Wait() // the waiter looks, and finds the lock taken again
			}
			synctest.Wait()
			require.True(t, w.OK)
			require.LessOrEqual(t, races, 17)
			if k.Owned {
				// It is the waiter's, and its goroutine is gone.
				require.Equal(t, w.ID, l.(interface{ Owner() locks.Owner }).Owner())
				require.NoError(t, l.UnlockContext(locks.WithOwner(t.Context(), w.ID)))
			} else {
				l.Unlock()
			}
			Works(t, l)
		})
	}},
}

// Cancelling has the situations in which a context or a time limit ends a wait.
var Cancelling = []Situation{
	{"a context that has ended beats a free lock", bubble(func(t *testing.T, l Lock, k Kind) {
		cause := assert.AnError
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		for range 100 {
			err := l.LockContext(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, cause)
			ok, err := l.TryLockContext(ctx)
			require.False(t, ok)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, cause)
		}
	})},
	{"a deadline that is over beats a free lock", bubble(func(t *testing.T, l Lock, k Kind) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		ok, err := l.TryLockContext(ctx)
		require.False(t, ok)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})},
	{"an ended context beats a held lock without a wait", bubble(func(t *testing.T, l Lock, k Kind) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		held(l, func() {
			require.ErrorIs(t, l.LockContext(ctx), context.Canceled)
			require.Zero(t, l.QueueLength())
		})
	})},
	{"a nil context fails LockContext but not UnlockContext", bubble(func(t *testing.T, l Lock, k Kind) {
		require.ErrorIs(t, l.LockContext(nil), locks.ErrNilContext) //nolint:staticcheck // the point
		ok, err := l.TryLockContext(nil)                            //nolint:staticcheck // the point
		require.False(t, ok)
		require.ErrorIs(t, err, locks.ErrNilContext)
		require.False(t, l.IsLocked())
		require.ErrorIs(t, l.UnlockContext(nil), locks.ErrNotHeld) //nolint:staticcheck // the point
		l.Lock()
		require.NoError(t, l.UnlockContext(nil)) //nolint:staticcheck // the point
		require.False(t, l.IsLocked())
	})},
	{"a context that ends a wait leaves no ghost", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		ctx, cancel := context.WithCancelCause(t.Context())
		var after int
		var ghost, any bool
		w := Start(func() (bool, error) {
			err := l.LockContext(ctx)
			after, ghost, any = l.QueueLength(), l.IsQueued(Me()), l.HasQueued()
			return err == nil, err
		}, nil)
		require.Equal(t, 1, l.QueueLength())
		require.True(t, l.IsQueued(w.ID))
		cancel(assert.AnError)
		synctest.Wait()
		require.True(t, w.Back)
		require.ErrorIs(t, w.Err, context.Canceled)
		require.ErrorIs(t, w.Err, assert.AnError)
		require.Zero(t, after)
		require.False(t, ghost)
		require.False(t, any)
		require.True(t, l.IsLocked(), "the holder is not concerned")
		l.Unlock()
	})},
	{"a deadline ends the wait when it comes", bubble(func(t *testing.T, l Lock, k Kind) {
		held(l, func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
			require.Equal(t, time.Hour, time.Since(began))
			require.False(t, l.HasQueued())
		})
	})},
	{"a context that ends after the acquisition does not release", bubble(func(t *testing.T, l Lock, k Kind) {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, l.LockContext(ctx))
		cancel()
		synctest.Wait()
		require.True(t, l.IsLocked())
		require.NoError(t, l.UnlockContext(ctx), "and releases nonetheless")
	})},
	{"two waiters that give up together leave no phantom", bubble(func(t *testing.T, l Lock, k Kind) {
		for range 100 {
			l.Lock()
			ctx, cancel := context.WithCancel(t.Context())
			a := Start(LockingContext(l, ctx), l.Unlock)
			b := Start(LockingContext(l, ctx), l.Unlock)
			cancel()
			synctest.Wait()
			require.ErrorIs(t, a.Err, context.Canceled)
			require.ErrorIs(t, b.Err, context.Canceled)
			require.False(t, l.HasQueued())
			l.Unlock()
			require.True(t, l.TryLockFor(0), "the fair try sees nobody")
			l.Unlock()
		}
	})},
	{"two waiters that time out together leave no phantom", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		a := Start(LockingFor(l, time.Second), l.Unlock)
		b := Start(LockingFor(l, time.Second), l.Unlock)
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, a.Back && b.Back)
		require.False(t, a.OK || b.OK)
		l.Unlock()
		require.True(t, l.TryLockFor(0))
		l.Unlock()
	})},
	{"a release that races with a cancellation loses nothing", func(t *testing.T, k Kind) {
		l := k.New()
		for range 500 {
			l.Lock()
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() {
				err := l.LockContext(ctx)
				assert.False(t, l.IsQueued(Me()))
				if err == nil {
					l.Unlock()
				} else {
					assert.ErrorIs(t, err, context.Canceled)
				}
			})
			Await(t, l.HasQueued, "the waiter")
			wg.Go(cancel)
			l.Unlock()
			wg.Wait()
			require.False(t, l.IsLocked())
			require.False(t, l.HasQueued())
		}
		Works(t, l)
	}},
	{"a storm of tiny time limits leaves a usable lock", stress(func(t *testing.T, l Lock) {
		const parties, rounds = 24, 150
		count, want := 0, atomic.Int64{}
		var wg sync.WaitGroup
		for i := range parties {
			wg.Go(func() {
				for j := range rounds {
					var ok bool
					if d := time.Duration(j%20) * time.Microsecond; i%2 == 0 {
						ok = l.TryLockFor(d)
					} else {
						ctx, cancel := context.WithTimeout(context.Background(), d)
						ok = l.LockContext(ctx) == nil
						cancel()
					}
					if ok {
						count++
						want.Add(1)
						if j%8 == 0 {
							runtime.Gosched()
						}
						l.Unlock()
					} else if l.IsQueued(Me()) {
						assert.Fail(t, "a ghost of this goroutine is queued")
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, int(want.Load()), count)
	})},
	{"a crowd waits and half of it gives up", func(t *testing.T, k Kind) {
		n := effort.Part(66_000) // all are more than 16 bits count
		if Race {
			n = 6000 // it knows no more than 8128 goroutines
		}
		l := k.New()
		l.Lock()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		in := 0
		var gaveUp atomic.Int64
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if i%2 == 0 {
					l.Lock()
				} else if l.LockContext(ctx) != nil {
					gaveUp.Add(1)
					return
				}
				in++
				l.Unlock()
			})
		}
		Await(t, func() bool { return l.QueueLength() == n }, "all to queue")
		cancel()
		Await(t, func() bool { return gaveUp.Load() == int64(n/2) }, "half of them to give up")
		require.Equal(t, n/2, l.QueueLength())
		l.Unlock()
		wg.Wait()
		require.Equal(t, n/2, in)
		Works(t, l)
	}},
}

package synchronizer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

var policies = []locks.Policy{locks.FIFO, locks.NonFair}

// each runs test under both policies, each in a bubble of its own.
func each(t *testing.T, test func(t *testing.T, p locks.Policy)) {
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, p) })
		})
	}
}

// waits starts a goroutine that acquires arg, and waits until it waits. The result tells the end.
func waits[R synchronizer.Rules](s *synchronizer.Sync[R], arg uint64) (acquired *atomic.Bool) {
	acquired = new(atomic.Bool)
	go func() {
		s.Acquire(arg)
		acquired.Store(true)
	}()
	synctest.Wait()
	return acquired
}

func TestReleaseAdmitsAllWaitersThatItSufficesFor(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(permitRules{10}, 0, p)
		a, b, c := waits(s, 2), waits(s, 3), waits(s, 4)
		require.True(t, s.Release(5))
		synctest.Wait()
		require.True(t, a.Load() && b.Load())
		require.False(t, c.Load())
		require.True(t, s.Release(4))
		synctest.Wait()
		require.True(t, c.Load())
		require.Zero(t, s.Word())
	})
}

func TestLargeWaiterKeepsSmallOnesBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := synchronizer.New(permitRules{10}, 3, locks.FIFO)
		large := waits(s, 5)
		require.False(t, s.TryAcquire(1), "3 are free")
		small := waits(s, 1)
		require.True(t, s.Release(1))
		synctest.Wait()
		require.False(t, large.Load() || small.Load())
		require.True(t, s.Release(2))
		synctest.Wait()
		require.True(t, large.Load() && small.Load())
	})
}

func TestNewcomerBargesOnlyWhenNonFair(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(permitRules{10}, 3, p)
		waits(s, 5)
		require.Equal(t, p == locks.NonFair, s.TryAcquire(1))
		s.Release(9 - s.Word())
		synctest.Wait()
	})
}

func TestOverdueWaiterIsNoLongerOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := synchronizer.New(permitRules{10}, 3, locks.NonFair)
		large := waits(s, 5)
		require.True(t, s.TryAcquire(1))
		time.Sleep(time.Millisecond) // of the bubble
		require.True(t, s.Release(1))
		require.False(t, s.TryAcquire(1), "the word is kept")
		require.True(t, s.Release(2))
		synctest.Wait()
		require.True(t, large.Load())
		require.False(t, s.HasQueued())
	})
}

// In a bubble no time passes, so races are counted.
func TestWaiterThatLosesRacesGetsTheWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := synchronizer.New(mutexRules{}, 1, locks.NonFair)
		waiter := waits(s, 1)
		for range 16 {
			require.False(t, waiter.Load())
			s.Release(1)
			s.TryAcquire(1) // as a rule the waiter has still to run
			synctest.Wait()
			if waiter.Load() {
				return
			}
		}
		s.Release(1)
		require.False(t, s.TryAcquire(1), "the word was handed over")
		synctest.Wait()
		require.True(t, waiter.Load())
	})
}

func TestWaitersAreAdmittedInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Mutex
		m.Lock()
		var order []int
		for i := range 20 {
			go func() {
				m.Lock()
				order = append(order, i)
				m.Unlock()
			}()
			synctest.Wait()
		}
		m.Unlock()
		synctest.Wait()
		require.IsIncreasing(t, order)
		require.Len(t, order, 20)
	})
}

func TestAcquisitionThatChangesNothingAdmitsAll(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(latchRules{}, 0, p)
		var all []*atomic.Bool
		for range 5 {
			all = append(all, waits(s, 0))
		}
		s.Release(0)
		synctest.Wait()
		for _, a := range all {
			require.True(t, a.Load())
		}
		require.False(t, s.HasQueued())
		s.Acquire(0)
	})
}

func TestRefusedReleaseChangesNothing(t *testing.T) {
	s := synchronizer.New(permitRules{3}, 3, locks.FIFO)
	require.False(t, s.Release(1))
	require.EqualValues(t, 3, s.Word())
}

func TestEndOfContextTakesTheWaiterOut(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(mutexRules{}, 1, p)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("shut down")
		var err error
		go func() { err = s.AcquireContext(ctx, 1) }()
		synctest.Wait()
		require.Equal(t, 1, s.QueueLength())
		cancel(cause)
		synctest.Wait()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "synchronizer: AcquireContext: ")
		require.Zero(t, s.QueueLength())
		require.False(t, s.HasQueued())
		require.True(t, s.Release(1))
		require.True(t, s.TryAcquire(1))
	})
}

func TestEndedContextAcquiresNothing(t *testing.T) {
	s := synchronizer.New(mutexRules{}, 0, locks.FIFO)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.AcquireContext(ctx, 1), context.Canceled)
	require.ErrorIs(t, s.AcquireContext(nil, 1), locks.ErrNilContext) //nolint:staticcheck // that is the test
	require.Zero(t, s.Word())
}

func TestFirstWaiterThatLeavesAdmitsTheNext(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(permitRules{10}, 0, p)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = s.AcquireContext(ctx, 5) }()
		synctest.Wait()
		second, third := waits(s, 4), waits(s, 1)
		s.Release(4)
		synctest.Wait()
		require.False(t, second.Load() || third.Load())
		cancel()
		synctest.Wait()
		require.True(t, second.Load())
		require.False(t, third.Load())
		s.Release(1)
		synctest.Wait()
		require.True(t, third.Load())
	})
}

func TestTimeLimitEndsTheWait(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(mutexRules{}, 1, p)
		began := time.Now()
		require.False(t, s.AcquireFor(1, time.Hour))
		require.Equal(t, time.Hour, time.Since(began))
		require.False(t, s.AcquireFor(1, 0))
		require.False(t, s.AcquireFor(1, -1))
		s.Release(1)
		require.True(t, s.AcquireFor(1, 0))
	})
}

// Whatever comes first, the waiter and the word agree.
func TestGrantAndCancellationThatMeetAgree(t *testing.T) {
	for _, p := range policies {
		s := synchronizer.New(mutexRules{}, 1, p)
		for range 2000 {
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() {
				if s.AcquireContext(ctx, 1) == nil {
					s.Release(1)
				}
			})
			wg.Go(cancel)
			wg.Go(func() { s.Release(1) })
			wg.Wait()
			require.Zero(t, s.Word())
			require.Zero(t, s.QueueLength())
			require.True(t, s.TryAcquire(1))
		}
	}
}

func TestSwapPastTheRulesAdmitsWaiters(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(permitRules{10}, 0, p)
		a := waits(s, 2)
		require.False(t, s.CompareAndSwap(1, 5))
		require.True(t, s.CompareAndSwap(0, 5))
		synctest.Wait()
		require.True(t, a.Load())
		require.EqualValues(t, 3, s.Word())
	})
}

func TestInspectionShowsWaitersInOrder(t *testing.T) {
	each(t, func(t *testing.T, p locks.Policy) {
		s := synchronizer.New(mutexRules{}, 1, p)
		var owners []locks.Owner
		for range 3 {
			ctx := locks.WithOwner(t.Context(), locks.NewOwner())
			owners = append(owners, locks.CurrentOwner(ctx))
			go func() {
				_ = s.AcquireContext(ctx, 1)
				s.Release(1)
			}()
			synctest.Wait()
		}
		require.Equal(t, owners, s.Queued())
		info, err := s.Inspect(t.Context())
		require.NoError(t, err)
		require.True(t, info.Held)
		require.Equal(t, 3, info.Waiting)
		require.Equal(t, owners[0], info.Waiters[0].Owner)
		s.Release(1)
	})
}

// The nodes of all waits come from one pool.
func TestSyncServesOneBubbleAfterAnother(t *testing.T) {
	for _, p := range policies {
		s := synchronizer.New(mutexRules{}, 0, p)
		use := func(ctx context.Context) {
			s.Acquire(1)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					s.Acquire(1)
					s.Release(1)
				})
				wg.Go(func() {
					if s.AcquireContext(ctx, 1) == nil {
						s.Release(1)
					}
				})
			}
			for s.QueueLength() < 6 {
				time.Sleep(time.Microsecond)
			}
			s.Release(1)
			wg.Wait()
		}
		for range 3 {
			use(t.Context())
			synctest.Test(t, func(t *testing.T) { use(t.Context()) })
		}
	}
}

// Each goroutine counts alone while it holds all permits, and with others while it holds some.
func TestHammeredPermitsAreNeverTooMany(t *testing.T) {
	for _, p := range policies {
		const size, rounds = 5, 2000
		s := synchronizer.New(permitRules{size}, size, p)
		var held atomic.Int64
		var wg sync.WaitGroup
		for g := range uint64(8) {
			wg.Go(func() {
				n := g%size + 1
				for i := range rounds {
					switch i % 4 {
					case 0:
						if !s.TryAcquire(n) {
							continue
						}
					case 1:
						if !s.AcquireFor(n, time.Duration(i)*time.Microsecond) {
							continue
						}
					default:
						s.Acquire(n)
					}
					if now := held.Add(int64(n)); now > size {
						t.Errorf("%d are held", now)
					}
					held.Add(-int64(n))
					s.Release(n)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, size, s.Word())
		require.False(t, s.HasQueued())
	}
}

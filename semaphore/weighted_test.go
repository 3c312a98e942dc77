package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/semaphore"
)

var _ locks.Inspector = (*semaphore.Weighted)(nil)

// wait is an acquisition under way.
type wait struct {
	n    int64
	done bool // written by its goroutine, read after synctest.Wait
	err  error
	stop context.CancelFunc
}

// begin starts an acquisition, and returns when it rests.
func begin(t *testing.T, s *semaphore.Weighted, n int64) *wait {
	ctx, stop := context.WithCancel(t.Context())
	w := &wait{n: n, stop: stop}
	go func() { w.err = s.Acquire(ctx, n); w.done = true }()
	synctest.Wait()
	return w
}

func TestGrownSizeAdmitsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(2)
		require.True(t, s.TryAcquire(2))
		first, second := begin(t, s, 2), begin(t, s, 1)
		s.Resize(5)
		synctest.Wait()
		require.True(t, first.done && second.done)
		require.EqualValues(t, 0, s.Available())
		require.EqualValues(t, 5, s.Size())
	})
}

func TestHoldersKeepWhatAShrunkSizeLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(5)
		require.True(t, s.TryAcquire(5))
		s.Resize(2)
		require.EqualValues(t, -3, s.Available())
		waiter := begin(t, s, 1)
		s.Release(3)
		synctest.Wait()
		require.False(t, waiter.done, "2 are held of 2")
		s.Release(2)
		synctest.Wait()
		require.True(t, waiter.done)
		require.Panics(t, func() { s.Release(2) }, "1 is held")
		s.Release(1)
		require.EqualValues(t, 2, s.Available())
	})
}

func TestWaitersLargerThanTheNewSizeFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(5)
		require.True(t, s.TryAcquire(4))
		large, small := begin(t, s, 5), begin(t, s, 1)
		limited := make(chan bool, 1)
		go func() { limited <- s.TryAcquireFor(4, time.Hour) }()
		synctest.Wait()
		require.False(t, small.done)
		s.Resize(3)
		synctest.Wait()
		require.ErrorIs(t, large.err, semaphore.ErrTooLarge)
		require.False(t, <-limited)
		require.False(t, small.done, "4 are held of 3")
		s.Release(2)
		synctest.Wait()
		require.True(t, small.done)
	})
}

func TestLargeWaiterKeepsSmallOnesBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(5)
		require.True(t, s.TryAcquire(2))
		large, small := begin(t, s, 4), begin(t, s, 1)
		require.False(t, small.done || s.TryAcquire(1) || s.TryAcquireFor(1, 0), "3 are free")
		require.Zero(t, s.Drain())
		s.Release(1)
		synctest.Wait()
		require.True(t, large.done)
		require.False(t, small.done)
		s.Release(1)
		synctest.Wait()
		require.True(t, small.done)
	})
}

func TestDrainTakesAllThatIsFree(t *testing.T) {
	s := semaphore.NewWeighted(7)
	require.True(t, s.TryAcquire(3))
	require.EqualValues(t, 4, s.Drain())
	require.Zero(t, s.Drain())
	s.Resize(6)
	require.Zero(t, s.Drain(), "less than nothing is free")
	s.Release(7)
	require.EqualValues(t, 6, s.Drain())
}

func TestTimeLimitEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(1)
		require.True(t, s.TryAcquireFor(1, time.Hour))
		began := time.Now()
		require.False(t, s.TryAcquireFor(1, time.Hour))
		require.Equal(t, time.Hour, time.Since(began))
		time.AfterFunc(time.Minute, func() { s.Release(1) })
		require.True(t, s.TryAcquireFor(1, time.Hour))
		require.Equal(t, time.Hour+time.Minute, time.Since(began))
	})
}

func TestInspectionShowsHoldsAndWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(3)
		info, err := s.Inspect(t.Context())
		require.NoError(t, err)
		require.False(t, info.Held || info.Shared)
		require.True(t, s.TryAcquire(2))
		owner := locks.NewOwner()
		go func() { _ = s.Acquire(locks.WithOwner(t.Context(), owner), 2) }()
		synctest.Wait()
		info, err = s.Inspect(t.Context())
		require.NoError(t, err)
		require.True(t, info.Held && info.Shared)
		require.Equal(t, owner, info.Waiters[0].Owner)
		require.Equal(t, []locks.Owner{owner}, s.Queued())
		require.Equal(t, 1, s.QueueLength())
		require.Equal(t, fmt.Sprintf("semaphore.Weighted(%p)[2 of 3 held, 1 queued]", s), s.String())
		s.Release(2)
		one := semaphore.NewWeighted(1)
		require.True(t, one.TryAcquire(1))
		info, err = one.Inspect(t.Context())
		require.NoError(t, err)
		require.True(t, info.Held && !info.Shared)
	})
}

func TestNilContextIsAnError(t *testing.T) {
	//nolint:staticcheck // that is the test
	require.ErrorIs(t, semaphore.NewWeighted(1).Acquire(nil, 1), locks.ErrNilContext)
}

// odd is a context that ends without an error.
type odd struct {
	context.Context
	done chan struct{}
}

func (c odd) Done() <-chan struct{} { return c.done }
func (odd) Err() error              { return nil }

func TestContextThatEndsWithoutErrorCountsAsCancelled(t *testing.T) {
	c := odd{t.Context(), make(chan struct{})}
	close(c.done)
	require.Equal(t, context.Canceled, semaphore.NewWeighted(1).Acquire(c, 1))
}

func TestLargestSizeIsCounted(t *testing.T) {
	s := semaphore.NewWeighted(math.MaxInt64)
	require.True(t, s.TryAcquire(math.MaxInt64))
	require.False(t, s.TryAcquire(1))
	s.Resize(0)
	require.Equal(t, int64(-math.MaxInt64), s.Available())
	s.Resize(math.MaxInt64)
	s.Release(math.MaxInt64)
	require.Panics(t, func() { s.Release(1) })
}

// A release of a holder never panics, and one of too much always does: as many succeed as are
// held.
func TestConcurrentReleasesAreCountedExactly(t *testing.T) {
	for range 300 {
		s := semaphore.NewWeighted(8)
		require.True(t, s.TryAcquire(5))
		var released atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				defer func() { _ = recover() }()
				s.Release(1)
				released.Add(1)
			})
		}
		wg.Wait()
		require.EqualValues(t, 5, released.Load())
		require.EqualValues(t, 8, s.Available())
	}
}

func TestHoldersReleaseWhileTheSizeChanges(t *testing.T) {
	s := semaphore.NewWeighted(4)
	var stop atomic.Bool
	var resizer, workers sync.WaitGroup
	resizer.Go(func() {
		for !stop.Load() {
			s.Resize(4 + rand.Int64N(8))
			runtime.Gosched()
		}
	})
	for range 4 {
		workers.Go(func() {
			for range 2000 {
				n := rand.Int64N(4) + 1
				if s.Acquire(t.Context(), n) != nil {
					t.Error("not acquired")
				}
				s.Release(n) // panics if it takes the size of another moment
			}
		})
	}
	workers.Wait()
	stop.Store(true)
	resizer.Wait()
	require.Equal(t, s.Size(), s.Available())
}

func TestSemaphoreServesOneBubbleAfterAnother(t *testing.T) {
	s := semaphore.NewWeighted(2)
	use := func(ctx context.Context) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if s.Acquire(ctx, 2) == nil {
						runtime.Gosched()
						s.Release(2)
					}
				}
			})
		}
		wg.Wait()
	}
	for range 3 {
		use(t.Context())
		synctest.Test(t, func(t *testing.T) { use(t.Context()) })
	}
}

// The model is the size, the free permits and the queue. After each operation all goroutines
// rest.
func TestWeightedAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			size, free := int64(5), int64(5)
			s := semaphore.NewWeighted(size)
			var queue, ended []*wait
			admit := func() {
				for len(queue) > 0 && queue[0].n <= max(free, 0) {
					free -= queue[0].n
					ended, queue = append(ended, queue[0]), queue[1:]
				}
			}
			weight := rapid.Int64Range(0, 6)
			rt.Repeat(map[string]func(*rapid.T){
				"acquire": func(rt *rapid.T) {
					w := begin(t, s, weight.Draw(rt, "n"))
					if w.n > size {
						if !errors.Is(w.err, semaphore.ErrTooLarge) {
							rt.Fatalf("Acquire(%d) of %d: %v", w.n, size, w.err)
						}
						return
					}
					queue = append(queue, w)
					admit()
				},
				"try": func(rt *rapid.T) {
					n := weight.Draw(rt, "n")
					want := len(queue) == 0 && n <= max(free, 0)
					if got := s.TryAcquire(n); got != want {
						rt.Fatalf("TryAcquire(%d) is %v", n, got)
					}
					if want {
						free -= n
					}
				},
				"drain": func(rt *rapid.T) {
					want := max(free, 0)
					if len(queue) > 0 {
						want = 0
					}
					if got := s.Drain(); got != want {
						rt.Fatalf("Drain is %d, want %d", got, want)
					}
					free -= want
				},
				"release": func(rt *rapid.T) {
					n := weight.Draw(rt, "n")
					panics := func() (panics bool) {
						defer func() { panics = recover() != nil }()
						s.Release(n)
						return
					}()
					if panics != (n > size-free) {
						rt.Fatalf("Release(%d) of %d panics: %v", n, size-free, panics)
					}
					if !panics {
						free += n
						admit()
					}
				},
				"resize": func(rt *rapid.T) {
					n := rapid.Int64Range(0, 8).Draw(rt, "size")
					s.Resize(n)
					synctest.Wait()
					free, size = free+n-size, n
					queue = slices.DeleteFunc(queue, func(w *wait) bool {
						if w.n > size && !errors.Is(w.err, semaphore.ErrTooLarge) {
							rt.Fatalf("a wait for %d of %d: %v", w.n, size, w.err)
						}
						return w.n > size
					})
					admit()
				},
				"cancel": func(rt *rapid.T) {
					if len(queue) == 0 {
						rt.Skip()
					}
					i := rapid.IntRange(0, len(queue)-1).Draw(rt, "i")
					w := queue[i]
					w.stop()
					queue = slices.Delete(queue, i, i+1)
					admit()
					synctest.Wait()
					if w.err != context.Canceled {
						rt.Fatalf("the cancelled wait: %v", w.err)
					}
				},
				"": func(rt *rapid.T) {
					synctest.Wait()
					if s.Available() != free || s.Size() != size || s.QueueLength() != len(queue) {
						rt.Fatalf("%v, want %d of %d free and %d queued", s, free, size, len(queue))
					}
					for _, w := range ended {
						if !w.done || w.err != nil {
							rt.Fatalf("an admitted wait for %d: %v, %v", w.n, w.done, w.err)
						}
						w.stop()
					}
					ended = nil
					for _, w := range queue {
						if w.done {
							rt.Fatalf("a wait for %d returned before its turn: %v", w.n, w.err)
						}
					}
				},
			})
			for _, w := range queue {
				w.stop()
			}
		})
	})
}

// state is the sequential semaphore.
type state struct{ size, free int64 }

// call is an operation in a history.
type call struct {
	op string
	n  int64
	ok bool
}

// linear is a semaphore whose operations take effect one after the other. A wait with a limit may
// fail at any time, and so may a try or a drain, if others wait.
var linear = porcupine.Model{
	Init: func() any { return state{4, 4} },
	Step: func(before, _, output any) (bool, any) {
		s, c := before.(state), output.(call)
		switch c.op {
		case "available":
			return c.n == s.free, s
		case "resize":
			return true, state{c.n, s.free + c.n - s.size}
		case "release":
			return c.n <= s.size-s.free, state{s.size, s.free + c.n}
		case "drain":
			return c.n == 0 || c.n == s.free, state{s.size, s.free - c.n}
		}
		if !c.ok {
			return true, s
		}
		return c.n <= s.free, state{s.size, s.free - c.n}
	},
	Equal: func(a, b any) bool { return a == b },
}

func TestConcurrentHistoriesAreLinearizable(t *testing.T) {
	const clients, rounds, operations = 4, 100, 10
	for range rounds {
		s := semaphore.NewWeighted(4)
		var mu sync.Mutex
		var history []porcupine.Operation
		var clock atomic.Int64
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				record := func(do func() call) call {
					began := clock.Add(1)
					c := do()
					ended := clock.Add(1)
					mu.Lock()
					history = append(history, porcupine.Operation{
						ClientId: client, Call: began, Output: c, Return: ended,
					})
					mu.Unlock()
					return c
				}
				for range operations {
					n := rand.Int64N(4) + 1
					got := record(func() call {
						switch rand.IntN(6) {
						case 0:
							return call{"try", n, s.TryAcquire(n)}
						case 1:
							return call{"limited", n, s.TryAcquireFor(n, 10*time.Microsecond)}
						case 2:
							return call{"drain", s.Drain(), true}
						case 3:
							s.Resize(n + 3)
							return call{"resize", n + 3, false}
						case 4:
							return call{"available", s.Available(), false}
						}
						return call{"acquire", n, s.Acquire(t.Context(), n) == nil}
					})
					if got.ok {
						record(func() call { s.Release(got.n); return call{"release", got.n, true} })
					}
				}
			})
		}
		wg.Wait()
		require.True(t, porcupine.CheckOperations(linear, history), "%v", history)
	}
}

// A goroutine that has read the new size may acquire so many permits.
func TestAShownSizeIsNotTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(4)
		s.Resize(1) // from now on waits for more than one are refused
		require.True(t, s.TryAcquire(1))
		s.Resize(4)
		waiter := begin(t, s, 4)
		require.False(t, waiter.done, "%v", waiter.err)
		s.Release(1)
		synctest.Wait()
		require.True(t, waiter.done)
		require.NoError(t, waiter.err)
	})
}

func TestNoPermitsAreFreeEvenIfTooManyAreHeld(t *testing.T) {
	s := semaphore.NewWeighted(4)
	require.True(t, s.TryAcquire(4))
	s.Resize(2)
	require.EqualValues(t, -2, s.Available())
	require.NoError(t, s.Acquire(t.Context(), 0))
	require.NoError(t, s.Acquire(context.Background(), 0))
	require.True(t, s.TryAcquire(0))
	require.True(t, s.TryAcquireFor(0, time.Hour))
	require.EqualValues(t, -2, s.Available())
	s.Release(0)
	s.Release(4)
	require.EqualValues(t, 2, s.Available())
}

func TestAWaitForNoPermitsEndsWhenItIsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewWeighted(4)
		require.True(t, s.TryAcquire(4))
		first, cancel := context.WithCancel(t.Context())
		go func() { _ = s.Acquire(first, 1) }()
		synctest.Wait()
		none := make(chan error, 1)
		go func() { none <- s.Acquire(t.Context(), 0) }()
		synctest.Wait()
		s.Resize(2)
		cancel()
		require.NoError(t, <-none)
		s.Release(4)
	})
}

func TestAnAcquisitionOfTooManyPermitsNamesTheNumbers(t *testing.T) {
	s := semaphore.NewWeighted(4)
	_, err := s.AcquireContext(t.Context(), 9)
	require.EqualError(t, err, "semaphore: AcquireContext: more permits than the semaphore has: 9 of 4")
	require.ErrorIs(t, err, semaphore.ErrTooLarge)
	err = s.Acquire(t.Context(), 9)
	require.EqualError(t, err, "semaphore: Acquire: more permits than the semaphore has: 9 of 4")
	require.ErrorIs(t, err, semaphore.ErrTooLarge)
	_, _, err = s.TryAcquireContext(t.Context(), 9)
	require.EqualError(t, err, "semaphore: TryAcquireContext: more permits than the semaphore has: 9 of 4")
	require.ErrorIs(t, err, semaphore.ErrTooLarge)
}

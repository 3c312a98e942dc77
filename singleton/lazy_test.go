package singleton_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/singleton"
)

var errBroken = errors.New("broken")

// gated is a constructor that stops where a test wants it to.
type gated struct {
	begun, finish chan struct{}
	calls         atomic.Int32
}

func newGated() *gated {
	return &gated{begun: make(chan struct{}, 100), finish: make(chan struct{}, 100)}
}

func (g *gated) construct() (int, error) {
	n := g.calls.Add(1)
	g.begun <- struct{}{}
	<-g.finish
	return int(n), nil
}

func TestManyCallersAtOnceShareOneConstruction(t *testing.T) {
	for range 200 {
		var calls atomic.Int32
		type config struct{ a, b int }
		l := singleton.NewContext(func(context.Context) (*config, error) {
			calls.Add(1)
			runtime.Gosched()
			return &config{1, 2}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		start := make(chan struct{})
		got := make([]*config, 16)
		for i := range got {
			wg.Go(func() {
				<-start
				var err error
				if i%2 == 0 {
					got[i], err = l.Get()
				} else {
					got[i], err = l.GetContext(ctx)
				}
				if err != nil || *got[i] != (config{1, 2}) {
					t.Errorf("%v, %v", got[i], err)
				}
			})
		}
		close(start)
		wg.Wait()
		cancel()
		require.EqualValues(t, 1, calls.Load())
		for _, each := range got {
			require.Same(t, got[0], each)
		}
	}
}

func TestAFailureGoesToItsConstructorsCaller(t *testing.T) {
	calls := 0
	l := singleton.New(func() (int, error) {
		if calls++; calls < 3 {
			return 99, errBroken
		}
		return calls, nil
	})
	for range 2 {
		v, err := l.Get()
		require.Same(t, errBroken, err, "as it is")
		require.Zero(t, v)
		_, ok := l.Peek()
		require.False(t, ok)
	}
	require.Equal(t, 3, l.MustGet())
	require.Equal(t, 3, l.MustGet())
	require.Equal(t, 3, calls)
}

func TestOneWaiterForAFailureConstructsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, failures = 20, 5
		var calls, running, failed atomic.Int32
		l := singleton.New(func() (int, error) {
			if running.Add(1) != 1 {
				t.Error("two constructors at a time")
			}
			defer running.Add(-1)
			n := calls.Add(1)
			time.Sleep(time.Second)
			if n <= failures {
				return 0, errBroken
			}
			return int(n), nil
		})
		var wg sync.WaitGroup
		for i := range waiters {
			wg.Go(func() {
				ctx := context.Background()
				if i%2 == 0 {
					var cancel func()
					ctx, cancel = context.WithCancel(ctx)
					defer cancel()
				}
				v, err := l.GetContext(ctx)
				if err != nil {
					failed.Add(1)
				} else if v != failures+1 {
					t.Errorf("got %d", v)
				}
			})
		}
		start := time.Now()
		wg.Wait()
		require.EqualValues(t, failures, failed.Load(), "an error each, for those who constructed")
		require.EqualValues(t, failures+1, calls.Load())
		require.Equal(t, (failures+1)*time.Second, time.Since(start))
	})
}

func TestAfterAPanicTheNextTriesAgain(t *testing.T) {
	g := newGated()
	boom := true
	l := singleton.New(func() (int, error) {
		v, err := g.construct()
		if boom {
			boom = false
			panic(errBroken)
		}
		return v, err
	})
	waited := make(chan int)
	g.finish <- struct{}{}
	g.finish <- struct{}{}
	go func() {
		<-g.begun
		v, _ := l.Get()
		waited <- v
	}()
	require.PanicsWithValue(t, errBroken, func() { l.MustGet() })
	require.Equal(t, 2, <-waited)
	require.Equal(t, 2, l.MustGet())
}

func TestAfterGoexitTheNextTriesAgain(t *testing.T) {
	calls := 0
	l := singleton.New(func() (int, error) {
		if calls++; calls == 1 {
			runtime.Goexit()
		}
		return calls, nil
	})
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.MustGet()
		returned = true
	}()
	<-done
	require.False(t, returned)
	_, ok := l.Peek()
	require.False(t, ok)
	require.Equal(t, 2, l.MustGet())
}

func TestAConstructorThatNeedsItselfFails(t *testing.T) {
	var l *singleton.Lazy[int]
	var inner []error
	l = singleton.New(func() (int, error) {
		_, err := l.Get()
		inner = append(inner, err)
		_, err = l.GetContext(t.Context())
		inner = append(inner, err)
		_, err = l.GetContext(locks.WithOwner(t.Context(), locks.NewOwner()))
		inner = append(inner, err)
		return 42, nil
	})
	v, err := l.Get()
	require.NoError(t, err, "that it asked is no failure by itself")
	require.Equal(t, 42, v)
	require.Len(t, inner, 3)
	for _, err := range inner {
		require.ErrorIs(t, err, singleton.ErrRecursive)
	}
}

func TestTwoConstructorsThatNeedEachOtherFail(t *testing.T) {
	var a, b *singleton.Lazy[int]
	a = singleton.New(func() (int, error) { return b.Get() })
	b = singleton.New(func() (int, error) { return a.Get() })
	_, err := a.Get()
	require.ErrorIs(t, err, singleton.ErrRecursive)
	_, err = b.Get()
	require.ErrorIs(t, err, singleton.ErrRecursive)
}

func TestAConstructorsContextShowsRecursionInOtherGoroutines(t *testing.T) {
	for name, outer := range map[string]context.Context{
		"goroutine": t.Context(),
		"owner":     locks.WithOwner(t.Context(), locks.NewOwner()),
	} {
		t.Run(name, func(t *testing.T) {
			var l *singleton.Lazy[int]
			l = singleton.NewContext(func(ctx context.Context) (int, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute) // instead of hanging
				defer cancel()
				result := make(chan error)
				go func() {
					_, err := l.GetContext(ctx)
					result <- err
				}()
				return 0, <-result
			})
			_, err := l.GetContext(outer)
			require.ErrorIs(t, err, singleton.ErrRecursive)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

func TestGoroutinesThatShareAnOwnerAreNotRecursive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := singleton.New(func() (int, error) {
			time.Sleep(time.Second)
			return 42, nil
		})
		ctx := locks.WithOwner(t.Context(), locks.NewOwner())
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if v, err := l.GetContext(ctx); v != 42 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAFailedContextDoesNotAffectTheNext(t *testing.T) {
	var kept context.Context
	l := singleton.NewContext(func(ctx context.Context) (int, error) {
		if kept == nil {
			kept = ctx
			return 0, errBroken
		}
		return 42, nil
	})
	_, err := l.Get()
	require.ErrorIs(t, err, errBroken)
	v, err := l.GetContext(kept)
	require.NoError(t, err)
	require.Equal(t, 42, v)
}

func TestAWaiterGivesUpDuringTheConstruction(t *testing.T) {
	g := newGated()
	l := singleton.New(g.construct)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { l.MustGet() })
	<-g.begun

	cause := errors.New("shutdown")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(cause) })
	v, err := l.GetContext(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	require.Zero(t, v)

	g.finish <- struct{}{}
	require.Equal(t, 1, l.MustGet())
	require.EqualValues(t, 1, g.calls.Load())
}

func TestTheConstructorGetsTheContextOfItsCaller(t *testing.T) {
	type key struct{}
	l := singleton.NewContext(func(ctx context.Context) (any, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return ctx.Value(key{}), nil
	})
	v, err := l.GetContext(context.WithValue(t.Context(), key{}, "mine"))
	require.NoError(t, err)
	require.Equal(t, "mine", v)
}

func TestAWaiterTakesOverACancelledConstruction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		l := singleton.NewContext(func(ctx context.Context) (int, error) {
			n := calls.Add(1)
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(time.Minute):
				return int(n), nil
			}
		})
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := l.GetContext(first)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
		synctest.Wait()
		v, err := l.GetContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, v)
		wg.Wait()
	})
}

func TestAnEndedContextConstructsNothing(t *testing.T) {
	calls := 0
	l := singleton.New(func() (int, error) { calls++; return 42, nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.GetContext(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, calls)
	l.MustGet()
	v, err := l.GetContext(ctx)
	require.NoError(t, err)
	require.Equal(t, 42, v)
}

func TestNilsAreErrors(t *testing.T) {
	var none context.Context
	calls := 0
	l := singleton.New(func() (int, error) { calls++; return 0, nil })
	_, err := l.GetContext(none)
	require.ErrorIs(t, err, locks.ErrNilContext)
	require.Zero(t, calls)

	var zero singleton.Lazy[int]
	for _, l := range []*singleton.Lazy[int]{&zero, singleton.New[int](nil), singleton.NewContext[int](nil)} {
		_, err := l.Get()
		require.ErrorIs(t, err, locks.ErrNilFunc)
		_, err = l.GetContext(t.Context())
		require.ErrorIs(t, err, locks.ErrNilFunc)
		_, ok := l.Peek()
		require.False(t, ok)
		func() {
			defer func() { require.ErrorIs(t, recover().(error), locks.ErrNilFunc) }()
			l.MustGet()
		}()
	}
}

func TestPeekNeverConstructs(t *testing.T) {
	g := newGated()
	l := singleton.New(g.construct)
	_, ok := l.Peek()
	require.False(t, ok)
	require.Zero(t, g.calls.Load())
	var wg sync.WaitGroup
	wg.Go(func() { l.MustGet() })
	<-g.begun
	_, ok = l.Peek()
	require.False(t, ok, "not before it is through")
	g.finish <- struct{}{}
	wg.Wait()
	v, ok := l.Peek()
	require.True(t, ok)
	require.Equal(t, 1, v)
}

func TestNilAndZeroAreValues(t *testing.T) {
	calls := 0
	l := singleton.New(func() (error, error) { calls++; return nil, nil })
	for range 3 {
		v, err := l.Get()
		require.NoError(t, err)
		require.NoError(t, v)
	}
	require.Equal(t, 1, calls)
}

func TestGettingAValueAllocatesNothing(t *testing.T) {
	l := singleton.New(func() (string, error) { return "value", nil })
	l.MustGet()
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = l.Get()
		_, _ = l.GetContext(ctx)
		_ = l.MustGet()
		_, _ = l.Peek()
	}))
}

func TestSuccessLetsTheConstructorGo(t *testing.T) {
	freed := make(chan struct{})
	l := func() *singleton.Lazy[int] {
		big := new([1 << 16]byte)
		runtime.AddCleanup(big, func(c chan struct{}) { close(c) }, freed)
		return singleton.New(func() (int, error) { return int(big[0]), nil }) // len(big) would be a constant
	}()
	l.MustGet()
	deadline := time.After(time.Minute)
	for {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(l)
			return
		case <-deadline:
			t.Fatal("the constructor is still there")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestWaitersLetTheirBubblesClockGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := singleton.New(func() (int, error) {
			time.Sleep(time.Hour)
			return 42, nil
		})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { l.MustGet() })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.GetContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
	})
}

// TestWaitersMayBeInAnotherBubble has the constructor and the waiters on different sides of the
// wall, which channels and conditions do not survive: the process would die.
func TestWaitersMayBeInAnotherBubble(t *testing.T) {
	wait := func(t *testing.T, l *singleton.Lazy[int], plain, ctx chan<- int) {
		go func() { plain <- l.MustGet() }()
		go func() {
			c, cancel := context.WithCancel(context.Background())
			defer cancel()
			v, err := l.GetContext(c)
			if err != nil {
				t.Error(err)
			}
			ctx <- v
		}()
	}
	t.Run("constructor inside", func(t *testing.T) {
		g := newGated() // outside: so that the waiters, who are too, open its gate
		l := singleton.New(g.construct)
		plain, ctx := make(chan int), make(chan int)
		var wg sync.WaitGroup
		wg.Go(func() {
			synctest.Test(t, func(t *testing.T) { l.MustGet() })
		})
		<-g.begun
		wait(t, l, plain, ctx)
		time.Sleep(5 * time.Millisecond) // most likely they wait by now
		g.finish <- struct{}{}
		require.Equal(t, 1, <-plain)
		require.Equal(t, 1, <-ctx)
		wg.Wait()
	})
	t.Run("waiters inside", func(t *testing.T) {
		g := newGated()
		l := singleton.New(g.construct)
		var wg sync.WaitGroup
		wg.Go(func() { l.MustGet() })
		<-g.begun
		time.AfterFunc(5*time.Millisecond, func() { g.finish <- struct{}{} })
		synctest.Test(t, func(t *testing.T) {
			plain, ctx := make(chan int), make(chan int)
			wait(t, l, plain, ctx)
			require.Equal(t, 1, <-plain)
			require.Equal(t, 1, <-ctx)
		})
		wg.Wait()
	})
	t.Run("waiter in another gives up", func(t *testing.T) {
		g := newGated()
		l := singleton.New(g.construct)
		var wg sync.WaitGroup
		wg.Go(func() {
			synctest.Test(t, func(t *testing.T) { l.MustGet() })
		})
		<-g.begun
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := l.GetContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		g.finish <- struct{}{}
		wg.Wait()
	})
}

func TestAWaiterThatGaveUpLeavesNoGoroutineBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := singleton.New(func() (int, error) {
			time.Sleep(time.Hour)
			return 1, nil
		})
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { l.MustGet() })
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := l.GetContext(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		require.Less(t, runtime.NumGoroutine(), before+10)
	})
}

// counting is a context that counts the waits for its end.
type counting struct {
	context.Context
	waits *atomic.Int32
}

func (c counting) Done() <-chan struct{} {
	c.waits.Add(1)
	return c.Context.Done()
}

func TestAWaiterInAnotherBubbleSleeps(t *testing.T) {
	g := newGated()
	l := singleton.New(g.construct)
	var wg sync.WaitGroup
	wg.Go(func() { l.MustGet() })
	<-g.begun
	time.AfterFunc(20*time.Millisecond, func() { g.finish <- struct{}{} })
	var waits atomic.Int32
	synctest.Test(t, func(t *testing.T) {
		_, err := l.GetContext(counting{t.Context(), &waits})
		require.NoError(t, err)
	})
	wg.Wait()
	require.EqualValues(t, 1, waits.Load())
}

func TestContendedUseUnderFailuresPanicsAndCancellations(t *testing.T) {
	for range 30 {
		var calls, running atomic.Int32
		l := singleton.NewContext(func(context.Context) (*int, error) {
			if running.Add(1) != 1 {
				t.Error("two constructors at a time")
			}
			defer running.Add(-1)
			n := int(calls.Add(1))
			runtime.Gosched()
			switch {
			case n > 12:
				return &n, nil
			case n%3 == 0:
				panic(errBroken)
			case n%3 == 1:
				runtime.Goexit()
			}
			return nil, errBroken
		})
		var wg sync.WaitGroup
		var once sync.Map
		for i := range 24 {
			wg.Go(func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%4)*100*time.Microsecond)
				defer cancel()
				if i%4 != 0 {
					_, _ = l.GetContext(ctx)
				}
				if v, err := l.Get(); err == nil {
					once.Store(v, true)
				}
			})
		}
		wg.Wait()
		for calls.Load() <= 12 {
			func() {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					_, _ = l.Get()
				}()
				<-done
			}()
		}
		once.Store(l.MustGet(), true)
		n := 0
		once.Range(func(any, any) bool { n++; return true })
		require.Equal(t, 1, n, "one value")
		require.EqualValues(t, 13, calls.Load())
	}
}

// asking is a context whose Err first runs f.
type asking struct {
	context.Context
	f func()
}

func (c asking) Err() error { c.f(); return c.Context.Err() }

// A context's method may take a mutex of the program, which another caller may have.
func TestAContextMayWaitForAnotherCaller(t *testing.T) {
	l := singleton.New(func() (int, error) { return 1, nil })
	ctx := asking{t.Context(), func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.MustGet()
		}()
		<-done
	}}
	v, err := l.GetContext(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, v)
}

func TestAValueComesBeforeTheEndOfAContext(t *testing.T) {
	l := singleton.New(func() (int, error) { return 1, nil })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.GetContext(ended)
	require.ErrorIs(t, err, context.Canceled)
	v, err := l.GetContext(asking{ended, func() { l.MustGet() }}) // it is made meanwhile
	require.NoError(t, err)
	require.Equal(t, 1, v)
}

package ctxerr

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnErrorNamesOperationReasonAndCause(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, Check("pkg: Op", ctx))
	cancel(broken)
	err := Check("pkg: Op", ctx)
	require.EqualError(t, err, "pkg: Op: context canceled: broken")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, broken)
}

func TestACauseThatIsTheReasonAppearsOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, Check("pkg: Op", ctx), "pkg: Op: context canceled")
}

func TestANilContextIsAnError(t *testing.T) {
	var none context.Context
	require.ErrorIs(t, Check("pkg: Op", none), ErrNil)
}

// onlyDone is a context that has its own Done channel, and forgets Err.
type onlyDone struct {
	context.Context
	done chan struct{}
}

func (c onlyDone) Done() <-chan struct{} { return c.done }

func TestAContextOverridingOnlyDoneMeansCancelled(t *testing.T) {
	ctx := onlyDone{t.Context(), make(chan struct{})}
	close(ctx.done)
	err := Ended("pkg: Op", ctx)
	require.EqualError(t, err, "pkg: Op: context canceled")
	require.ErrorIs(t, err, context.Canceled)
}

func TestErrorsOfBothKindsOfContextsHaveTheCause(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	for _, ctx := range []context.Context{ctx, context.WithValue(ctx, t, 1)} {
		err := Ended("pkg: Op", ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, broken)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "pkg: Op: context canceled: broken")
		require.EqualError(t, Bare(err), "context canceled: broken")
	}
}

// overdue is a context with a deadline of its own.
type overdue struct{ context.Context }

func (overdue) Err() error { return context.DeadlineExceeded }

func TestAnErrorDoesNotChangeAfterTheCall(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	err := Ended("pkg: Op", overdue{parent})
	cancel()
	require.NotErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "pkg: Op: context deadline exceeded")
}

func TestAnErrorOutlivesTheBubbleOfItsContext(t *testing.T) {
	var err error
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		ctx.Done() // makes a channel of the bubble
		cancel(ErrNil)
		err = Ended("pkg: Op", ctx)
	})
	require.EqualError(t, err, "pkg: Op: context canceled: nil context")
	require.ErrorIs(t, err, ErrNil)
}

var sink error

func TestAnUnreadErrorCostsOneAllocation(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("broken"))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { sink = Check("pkg: Op", ctx) }))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { sink = Wrap("pkg: Op", ErrNil) }))
}

// kept reports whether ctx's value of 64 KiB, which the caller has forgotten, is still there.
func kept(t *testing.T, value weak.Pointer[[1 << 16]byte]) bool {
	t.Helper()
	for range 10 {
		if runtime.GC(); value.Value() == nil {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// big is the key of a value.
type big struct{}

// request returns the error of a cancelled request, which has a value.
func request(ctx context.Context) (weak.Pointer[[1 << 16]byte], error) {
	value := new([1 << 16]byte)
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, big{}, value))
	cancel(ErrNil)
	return weak.Make(value), Ended("pkg: Op", ctx)
}

func TestAnErrorThatWasReadKeepsNoContext(t *testing.T) {
	for name, read := range map[string]func(error){
		"Error":  func(err error) { _ = err.Error() },
		"Is":     func(err error) { errors.Is(err, ErrNil) },
		"Settle": Settle,
		"Settle of a tree": func(err error) {
			Settle(errors.Join(ErrNilFunc, fmt.Errorf("outer: %w", Wrap("pkg: Outer", err))))
		},
	} {
		value, err := request(t.Context())
		read(err)
		require.False(t, kept(t, value), name)
		require.ErrorIs(t, err, context.Canceled, name)
		require.EqualError(t, err, "pkg: Op: context canceled: nil context", name)
	}
	Settle(nil)
}

func TestGoroutinesReadOneErrorTogether(t *testing.T) {
	_, err := request(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if !errors.Is(err, ErrNil) || !errors.Is(err, context.Canceled) {
				t.Error("the cause is missing")
			}
		})
	}
	wg.Wait()
}

package ctxerr

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

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

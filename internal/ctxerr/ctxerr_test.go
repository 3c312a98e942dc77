package ctxerr

import (
	"context"
	"errors"
	"testing"

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

var sink error

func TestAnUnreadErrorCostsOneAllocation(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("broken"))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { sink = Check("pkg: Op", ctx) }))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { sink = Wrap("pkg: Op", ErrNil) }))
}

package adapter

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEndedContextTellsItsCause(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, context.Canceled, Ended(ctx))
	cause := errors.New("the machine goes down")
	ctx, end := context.WithCancelCause(context.Background())
	end(cause)
	require.ErrorIs(t, Ended(ctx), context.Canceled)
	require.ErrorIs(t, Ended(ctx), cause)
}

func TestNoCallBeginsUnderAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, Check(ctx))
	cancel()
	require.ErrorIs(t, Check(ctx), context.Canceled)
	require.ErrorIs(t, Check(nil), locks.ErrNilContext)
}

// key is that of a value in the contexts of callers.
type key struct{}

func TestAWaitEndsWithItsCallerOrItsClient(t *testing.T) {
	forever := func(ctx context.Context) error {
		<-ctx.Done()
		require.Equal(t, "value", ctx.Value(key{}))
		return ctx.Err()
	}
	caller := context.WithValue(context.Background(), key{}, "value")
	ended, cancel := context.WithCancel(caller)
	cancel()
	require.ErrorIs(t, Until(ended, context.Background(), forever), context.Canceled)

	client, cancel := context.WithCancel(context.Background())
	cancel()
	going, cancel := context.WithCancel(caller)
	defer cancel()
	require.ErrorIs(t, Until(caller, client, forever), locks.ErrClosed)
	require.ErrorIs(t, Until(going, client, forever), locks.ErrClosed)
}

func TestAWaitReturnsItsOwnError(t *testing.T) {
	failed := errors.New("it failed")
	ctx := context.Background()
	require.NoError(t, Until(ctx, ctx, func(context.Context) error { return nil }))
	require.Equal(t, failed, Until(ctx, ctx, func(context.Context) error { return failed }))
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	require.True(t, Sleep(ctx, time.Microsecond))
	cancel()
	require.False(t, Sleep(ctx, time.Hour))
}

func TestJitterIsAPartOfThePause(t *testing.T) {
	for d := range time.Duration(100) {
		require.GreaterOrEqual(t, Jitter(d), d/2)
		require.LessOrEqual(t, Jitter(d), d)
	}
}

func TestNoJobBeginsAfterClose(t *testing.T) {
	var jobs Jobs
	release, ended := make(chan struct{}), make(chan struct{})
	require.True(t, jobs.Go(func() { <-release; close(ended) }))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	jobs.Close(ctx) // and waits no longer than ctx
	require.False(t, jobs.Go(func() {}))
	close(release)
	jobs.Close(context.Background())
	select {
	case <-ended:
	default:
		require.Fail(t, "Close did not wait")
	}
}

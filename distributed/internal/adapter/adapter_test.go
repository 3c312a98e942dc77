package adapter

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
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

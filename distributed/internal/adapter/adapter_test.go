package adapter

import (
	"context"
	"errors"
	"fmt"
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

func TestOnlyTheEndOfTheCallersContextIsOne(t *testing.T) {
	deadline, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	caused, end := context.WithCancelCause(context.Background())
	end(context.DeadlineExceeded)
	reset := errors.New("connection reset")
	for what, c := range map[string]struct {
		ctx                 context.Context
		err                 error
		text                string
		exceeded, cancelled bool
	}{
		"goes on, deadline":       {context.Background(), context.DeadlineExceeded, "get: no answer in time", false, false},
		"goes on, cancelled":      {context.Background(), context.Canceled, "get: the request was given up", false, false},
		"goes on, text alone":     {context.Background(), errors.New("context canceled"), "get: the request was given up", false, false},
		"goes on, neither":        {context.Background(), reset, "get: connection reset", false, false},
		"no context":              {nil, context.DeadlineExceeded, "get: no answer in time", false, false},
		"deadline, deadline":      {deadline, context.DeadlineExceeded, "get: context deadline exceeded", true, false},
		"deadline, cancelled":     {deadline, context.Canceled, "get: the request was given up", false, false},
		"cancelled, cancelled":    {cancelled, context.Canceled, "get: context canceled", false, true},
		"cancelled, deadline":     {cancelled, context.DeadlineExceeded, "get: no answer in time", false, false},
		"cancelled by a deadline": {caused, context.DeadlineExceeded, "get: context deadline exceeded", true, false},
	} {
		t.Run(what, func(t *testing.T) {
			inner := fmt.Errorf("get: %w", errors.Join(c.err))
			err := OfStore(c.ctx, inner)
			require.EqualError(t, err, c.text)
			require.Equal(t, c.exceeded, errors.Is(err, context.DeadlineExceeded))
			require.Equal(t, c.cancelled, errors.Is(err, context.Canceled))
			require.Equal(t, c.err == reset, errors.Is(err, reset))
		})
	}
	require.NoError(t, OfStore(nil, nil))
	var limit interface{ Timeout() bool }
	require.ErrorAs(t, OfStore(nil, context.DeadlineExceeded), &limit, "what else an error is can be seen")
}

func TestAListEndsWithTheErrorOfAContextOnlyForItsCaller(t *testing.T) {
	late := func(func(string)) error { return context.DeadlineExceeded }
	_, err := Names(context.Background(), "list", "", late)
	require.EqualError(t, err, "list: no answer in time")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	ended, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, err = Names(ended, "list", "", late)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestNoCallBeginsUnderAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, Check(ctx))
	cancel()
	require.ErrorIs(t, Check(ctx), context.Canceled)
	require.ErrorIs(t, Check(nil), locks.ErrNilContext)
}

// key is the key of a value in the contexts of callers.
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

func TestAHostHasAPortAndNoLogin(t *testing.T) {
	require.Equal(t, "store:9000", HostOf("https://ada:secret@store:9000/path"))
	require.Empty(t, HostOf(""))
	require.Empty(t, HostOf("http://%"))
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

func TestAUUIDSaysItsVersion(t *testing.T) {
	for version, form := range map[byte]string{4: "4", 8: "8"} {
		id := NewUUID(version)
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-`+form+`[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		require.NotEqual(t, id, NewUUID(version))
	}
}

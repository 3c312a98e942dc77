package ctxerr

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAQuietContextHasEndDeadlineAndValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithCancel(context.WithValue(t.Context(), big{}, 7))
		quiet := Quiet(outer)
		require.NoError(t, quiet.Err())
		_, limited := quiet.Deadline()
		require.False(t, limited)
		require.Equal(t, 7, quiet.Value(big{}))
		cancel()
		<-quiet.Done()
		require.Equal(t, context.Canceled, quiet.Err())

		timed, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		quiet = Quiet(context.WithValue(timed, big{}, 8))
		end, limited := quiet.Deadline()
		require.True(t, limited)
		require.Equal(t, time.Minute, time.Until(end))
		<-quiet.Done()
		require.Equal(t, context.DeadlineExceeded, quiet.Err())
		require.True(t, EndOf(timed).Reached())
		require.Equal(t, context.Background(), Quiet(context.Background()))
	})
}

// oddly is a context with an error of its own.
type oddly struct{ context.Context }

var errOddly = errors.New("odd")

func (oddly) Err() error { return errOddly }

func TestAnErrorIsExplainedByItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrNilFunc)
	err := Explain(ctx, Wrap("pkg: Op", context.Canceled))
	require.EqualError(t, err, "pkg: Op: context canceled: nil function")
	require.ErrorIs(t, err, ErrNilFunc)
	require.Equal(t, err, Explain(ctx, err), "nothing is missing")
	require.ErrorIs(t, Explain(oddly{ctx}, Wrap("pkg: Op", context.Canceled)), errOddly)
	require.Equal(t, ErrNil, Explain(ctx, ErrNil), "another reason")
	require.NoError(t, Explain(ctx, nil))
}

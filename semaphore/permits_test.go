package semaphore_test

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/semaphore"
)

func TestPermitsOfAWeightedAreReleasedOnce(t *testing.T) {
	ctx := t.Context()
	w := semaphore.NewWeighted(3)
	var s locks.Semaphore = w
	two, err := s.AcquireContext(ctx, 2)
	require.NoError(t, err)
	require.EqualValues(t, 2, two.Count())
	require.NoError(t, two.Err())
	require.NoError(t, two.Extend(ctx, time.Second))
	require.NoError(t, two.Extend(ctx, time.Millisecond))
	require.Error(t, two.Extend(ctx, time.Millisecond-1))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, two.Extend(ended, time.Second), context.Canceled)
	none, ok, err := s.TryAcquireContext(ctx, 2)
	require.NoError(t, err)
	require.False(t, ok)
	require.Nil(t, none)
	one, ok, err := s.TryAcquireContext(ctx, 1)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 1, one.Count())
	require.NoError(t, one.ReleaseContext(ctx))
	require.ErrorIs(t, one.ReleaseContext(ctx), locks.ErrNotHeld, "although others are held")
	require.EqualValues(t, 1, w.Available())
	require.NoError(t, two.ReleaseContext(ctx))
	require.ErrorIs(t, two.ReleaseContext(ctx), locks.ErrNotHeld)
	require.ErrorIs(t, two.Err(), locks.ErrNotHeld)
	require.ErrorIs(t, two.Extend(ctx, time.Second), locks.ErrLost)
	require.EqualValues(t, 3, w.Available())
}

func TestPermitsThatReleaseGaveBackAreNotHeld(t *testing.T) {
	w := semaphore.NewWeighted(2)
	two, err := w.AcquireContext(t.Context(), 2)
	require.NoError(t, err)
	w.Release(2)
	require.ErrorIs(t, two.ReleaseContext(t.Context()), locks.ErrNotHeld)
	require.EqualValues(t, 2, w.Available())
}

func TestPermitsOfAWeightedAreNeverLost(t *testing.T) {
	p, _, err := semaphore.NewWeighted(1).TryAcquireContext(t.Context(), 1)
	require.NoError(t, err)
	require.Nil(t, p.Lost())
	require.Zero(t, p.Token())
	_, limited := p.Deadline()
	require.False(t, limited)
}

func TestContextErrorsSayWhatWasAttempted(t *testing.T) {
	s := semaphore.NewWeighted(2)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var none context.Context
	for _, c := range []struct {
		ctx  context.Context
		n    int64
		want error
	}{
		{t.Context(), 3, locks.ErrTooLarge},
		{t.Context(), 0, fs.ErrInvalid},
		{t.Context(), -1, fs.ErrInvalid},
		{ended, 1, context.Canceled},
		{none, 1, locks.ErrNilContext},
	} {
		_, err := s.AcquireContext(c.ctx, c.n)
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, "semaphore: AcquireContext: ")
		p, ok, err := s.TryAcquireContext(c.ctx, c.n)
		require.Nil(t, p)
		require.False(t, ok)
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, "semaphore: TryAcquireContext: ")
	}
	require.EqualValues(t, 2, s.Available())
}

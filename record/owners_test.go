package record_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/record"
)

// open is a lock of any number of holders, which any caller releases. Its unlock may panic.
type open struct{ broken bool }

func (*open) LockContext(context.Context) error            { return nil }
func (*open) TryLockContext(context.Context) (bool, error) { return true, nil }

func (o *open) UnlockContext(context.Context) error {
	if o.broken {
		panic("broken")
	}
	return nil
}

func TestAStrangersReleaseEndsTheOldestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		l := r.Wrap("l", new(open))
		const n = 8
		for range n {
			require.NoError(t, l.LockContext(as()))
			time.Sleep(time.Second)
		}
		for i := range n {
			holds := r.Holds()
			require.Len(t, holds, n-i)
			require.NoError(t, l.UnlockContext(as()))
			require.Equal(t, holds[1:], append([]record.Hold{}, r.Holds()...), "the oldest is gone")
			require.EqualValues(t, n-i-1, r.Stats()[0].Held)
		}
	})
}

func TestAnUnlockThatPanicsKeepsTheOwnersHold(t *testing.T) {
	r := record.New(record.Options{})
	inner := new(open)
	l, owner, other := r.Wrap("l", inner), as(), as()
	for _, ctx := range []context.Context{other, owner, owner} {
		require.NoError(t, l.LockContext(ctx))
	}
	before := r.Holds()
	inner.broken = true
	for _, ctx := range []context.Context{owner, other, as()} {
		require.Panics(t, func() { l.UnlockContext(ctx) })
		require.Equal(t, before, r.Holds())
		require.EqualValues(t, 2, r.Stats()[0].Held)
	}
	inner.broken = false
	for range 2 {
		require.NoError(t, l.UnlockContext(owner))
	}
	require.EqualValues(t, 1, r.Stats()[0].Held)
	require.NoError(t, l.UnlockContext(other))
	require.Zero(t, r.Stats()[0].Held)
}

package keyed_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
)

// fickle is a context that has not ended when it is asked first, and has afterwards.
type fickle struct {
	context.Context
	asked *int
}

func (c fickle) Err() error {
	if *c.asked++; *c.asked == 1 {
		return nil
	}
	return context.Canceled
}

func TestAContextThatEndsBeforeTheFirstTryLocksNothing(t *testing.T) {
	var ls keyed.Mutexes[string]
	ctx := fickle{locks.WithOwner(t.Context(), locks.NewOwner()), new(int)}
	require.ErrorIs(t, ls.Of("it").LockContext(ctx), context.Canceled)
	require.Zero(t, ls.Len())
}

// curious is a context of the program that looks at the lock, whenever it is asked.
type curious struct {
	context.Context
	look func()
}

func (c curious) Err() error {
	c.look()
	return c.Context.Err()
}

func (c curious) Value(key any) any {
	c.look()
	return c.Context.Value(key)
}

func TestNoMethodAsksAContextUnderAMutex(t *testing.T) {
	var ls keyed.Mutexes[string]
	l := ls.Of("it")
	for _, parent := range []context.Context{t.Context(), locks.WithOwner(t.Context(), locks.NewOwner())} {
		ctx := curious{parent, func() { l.QueueLength() }}
		require.NoError(t, l.LockContext(ctx))
		require.Equal(t, 1, l.HoldCountContext(ctx))
		require.True(t, l.IsHeldContext(ctx))
		info, err := l.Inspect(ctx)
		require.NoError(t, err)
		require.True(t, info.Held)
		ok, err := l.TryLockContext(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, l.UnlockContext(ctx))
		require.NoError(t, l.UnlockContext(ctx))
	}
	require.Zero(t, ls.Len())
}

func TestAnUnlockByAnotherOwnerNamesTheHolder(t *testing.T) {
	var ls keyed.Mutexes[string]
	l := ls.Of("it")
	stranger := locks.NewOwner()
	a, b := locks.WithOwner(t.Context(), locks.NewOwner()), locks.WithOwner(t.Context(), stranger)
	require.ErrorContains(t, l.UnlockContext(a), `of "it": lock not held by the caller: the keyed.Mutex is free`)
	require.NoError(t, l.LockContext(a))
	err := l.UnlockContext(b)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.ErrorContains(t, err, stranger.String()+": the keyed.Mutex is held by "+l.Owner().String())
	require.NoError(t, l.UnlockContext(a))
}

func TestAnInspectionWithAnEndedContextNamesTheKey(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := new(keyed.Mutexes[string]).Of("it").Inspect(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `keyed: Inspect of "it": `)
}

package locks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/fakelock"
)

func TestTryDoRunsUnderAFreeLock(t *testing.T) {
	l := &fakelock.Lock{Owned: true}
	ran, err := locks.TryDo(ctx, l, func(inner context.Context) error {
		require.Equal(t, ctx, inner)
		require.Equal(t, 1, l.Count())
		return errOne
	})
	require.True(t, ran)
	require.True(t, err == errOne)
	require.Zero(t, l.Count())
}

func TestTryDoDoesNotWaitForAHolder(t *testing.T) {
	l := &fakelock.Lock{Owned: true}
	require.NoError(t, l.LockContext(locks.WithOwner(ctx, locks.NewOwner())))
	ran, err := locks.TryDo(ctx, l, func(context.Context) error { t.Error("runs"); return nil })
	require.False(t, ran)
	require.NoError(t, err)
	require.Equal(t, 1, l.Count())
}

func TestTryDoUnderADoneContextRunsNothing(t *testing.T) {
	done, cancel := context.WithCancel(ctx)
	cancel()
	ran, err := locks.TryDo(done, &fakelock.Lock{}, func(context.Context) error { t.Error("runs"); return nil })
	require.False(t, ran)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTryDoRefusesNilArguments(t *testing.T) {
	var none context.Context
	fn := func(context.Context) error { t.Error("runs"); return nil }
	l := &fakelock.Lock{}
	for _, try := range []func() (bool, error){
		func() (bool, error) { return locks.TryDo(ctx, nil, fn) },
		func() (bool, error) { return locks.TryDo(ctx, l, nil) },
		func() (bool, error) { return locks.TryDo(none, l, fn) },
	} {
		ran, err := try()
		require.False(t, ran)
		require.Error(t, err)
	}
	require.Zero(t, l.Count())
}

func TestTryDoEndsItsContextAfterALoss(t *testing.T) {
	l := fakelock.NewLeased("")
	ran, err := locks.TryDo(ctx, l, func(ctx context.Context) error {
		l.Lose()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.True(t, ran)
	require.ErrorIs(t, err, locks.ErrLost)
}

func TestHoldFromReturnsTheHoldWithItsToken(t *testing.T) {
	l := fakelock.NewLeased("")
	require.NoError(t, locks.Do(ctx, l, func(ctx context.Context) error {
		want, err := l.Hold(ctx)
		require.NoError(t, err)
		got, ok := locks.HoldFrom(ctx)
		require.True(t, ok)
		require.Equal(t, want.Token(), got.Token())
		require.NotZero(t, got.Token())
		return nil
	}))
	var none context.Context
	for _, ctx := range []context.Context{ctx, none} {
		_, ok := locks.HoldFrom(ctx)
		require.False(t, ok)
	}
}

func TestHoldFromReturnsTheInnermostHold(t *testing.T) {
	outer, inner, plain := fakelock.NewLeased(""), fakelock.NewLeased(""), &fakelock.Lock{}
	require.NoError(t, inner.LockContext(ctx)) // so that the two have different tokens
	require.NoError(t, inner.UnlockContext(ctx))
	token := func(ctx context.Context) uint64 {
		h, ok := locks.HoldFrom(ctx)
		require.True(t, ok)
		return h.Token()
	}
	require.NoError(t, locks.Do(ctx, outer, func(ctx context.Context) error {
		first := token(ctx)
		return locks.Do(ctx, inner, func(ctx context.Context) error {
			second := token(ctx)
			require.NotEqual(t, first, second)
			return locks.Do(ctx, plain, func(ctx context.Context) error {
				require.Equal(t, second, token(ctx))
				return nil
			})
		})
	}))
}

func TestAGuardedValueIsReachedUnderItsLock(t *testing.T) {
	l := &fakelock.Lock{Owned: true}
	g := locks.NewGuarded(l, 40)
	require.NoError(t, g.With(ctx, func(n *int) error {
		require.Equal(t, 1, l.Count())
		*n++
		return nil
	}))
	ran, err := g.TryWith(ctx, func(n *int) error {
		require.Equal(t, 1, l.Count())
		*n++
		return errOne
	})
	require.True(t, ran)
	require.Equal(t, errOne, err)
	require.NoError(t, g.With(ctx, func(n *int) error { require.Equal(t, 42, *n); return nil }))
	require.Zero(t, l.Count())
}

func TestAGuardedValueIsUnreachableWhileAnotherHolds(t *testing.T) {
	l := &fakelock.Lock{Owned: true}
	g := locks.NewGuarded(l, 0)
	require.NoError(t, l.LockContext(locks.WithOwner(ctx, locks.NewOwner())))
	fn := func(*int) error { t.Error("runs"); return nil }
	ran, err := g.TryWith(ctx, fn)
	require.False(t, ran)
	require.NoError(t, err)
	done, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, g.With(done, fn), context.Canceled)
}

func TestZeroGuardedAndNilFunctionAreErrors(t *testing.T) {
	var zero locks.Guarded[int]
	require.Error(t, zero.With(ctx, func(*int) error { t.Error("runs"); return nil }))
	_, err := zero.TryWith(ctx, func(*int) error { t.Error("runs"); return nil })
	require.Error(t, err)
	g := locks.NewGuarded(&fakelock.Lock{}, 0)
	require.Error(t, g.With(ctx, nil))
	_, err = g.TryWith(ctx, nil)
	require.Error(t, err)
}

func TestErrorsNameTheFunctionThatWasCalled(t *testing.T) {
	var (
		none      locks.Guarded[int]
		noContext context.Context
	)
	nothing := func(*int) error { return nil }
	_, tried := locks.TryDo(ctx, nil, func(context.Context) error { return nil })
	_, guardTried := none.TryWith(ctx, nothing)
	some := locks.NewGuarded(new(fakelock.Lock), 0)
	for want, err := range map[string]error{
		"locks: Do: nil lock":               locks.Do(ctx, nil, func(context.Context) error { return nil }),
		"locks: Do: nil function":           locks.Do(ctx, new(fakelock.Lock), nil),
		"locks: TryDo: nil lock":            tried,
		"locks: Guarded.With: nil lock":     none.With(ctx, nothing),
		"locks: Guarded.With: nil function": some.With(ctx, nil),
		"locks: Guarded.With: nil context":  some.With(noContext, nothing),
		"locks: Guarded.TryWith: nil lock":  guardTried,
	} {
		require.EqualError(t, err, want)
	}
}

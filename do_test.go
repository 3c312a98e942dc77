package locks_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/fakelock"
)

var (
	ctx    = context.Background()
	errOne = errors.New("one")
	errTwo = errors.New("two")
)

func fails(err error) func() error { return func() error { return err } }

func TestDoHoldsTheLockWhileItsFunctionRuns(t *testing.T) {
	l := &fakelock.Lock{Owned: true}
	require.NoError(t, locks.Do(ctx, l, func(inner context.Context) error {
		require.Equal(t, ctx, inner)
		require.Equal(t, 1, l.Count())
		return nil
	}))
	require.Zero(t, l.Count())
}

func TestDoReturnsItsFunctionsErrorUnchanged(t *testing.T) {
	l := &fakelock.Lock{}
	err := locks.Do(ctx, l, func(context.Context) error { return errOne })
	require.True(t, err == errOne)
	require.Zero(t, l.Count())
}

func TestDoRunsNothingAfterAFailedAcquisition(t *testing.T) {
	l := &fakelock.Lock{LockErr: fails(errOne), UnlockErr: fails(errTwo)}
	err := locks.Do(ctx, l, func(context.Context) error { t.Error("runs"); return nil })
	require.True(t, err == errOne)
}

func TestDoReleasesAndLetsAPanicPass(t *testing.T) {
	l := &fakelock.Lock{UnlockErr: fails(errTwo)}
	require.PanicsWithValue(t, "boom", func() {
		_ = locks.Do(ctx, l, func(context.Context) error { panic("boom") })
	})
	require.Zero(t, l.Count())
}

func TestDoReleasesAndLetsGoexitPass(t *testing.T) {
	l, returned := fakelock.NewLeased(""), false
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = locks.Do(ctx, l, func(context.Context) error { runtime.Goexit(); return nil })
		returned = true
	}()
	<-done
	require.False(t, returned)
	require.Zero(t, l.Count())
}

func TestDoReturnsTheErrorOfTheRelease(t *testing.T) {
	l := &fakelock.Lock{UnlockErr: fails(errTwo)}
	require.ErrorIs(t, locks.Do(ctx, l, func(context.Context) error { return nil }), errTwo)
}

func TestDoJoinsTheErrorsOfFunctionAndRelease(t *testing.T) {
	l := &fakelock.Lock{UnlockErr: fails(errTwo)}
	err := locks.Do(ctx, l, func(context.Context) error { return errOne })
	require.ErrorIs(t, err, errOne)
	require.ErrorIs(t, err, errTwo)
}

func TestDoReleasesOnce(t *testing.T) {
	releases := 0
	l := &fakelock.Lock{Reentrant: true, UnlockErr: func() error { releases++; return nil }}
	require.NoError(t, l.LockContext(ctx))
	require.NoError(t, locks.Do(ctx, l, func(context.Context) error { return nil }))
	require.Equal(t, 1, releases)
	require.Equal(t, 1, l.Count(), "the hold from before is left")
}

func TestDoReleasesAfterItsContextWasCancelled(t *testing.T) {
	l := &fakelock.Lock{Owned: true}
	ctx, cancel := context.WithCancel(ctx)
	require.NoError(t, locks.Do(ctx, l, func(context.Context) error { cancel(); return nil }))
	require.Zero(t, l.Count())
}

func TestDoActsForTheOwnerOfItsContext(t *testing.T) {
	l := &fakelock.Lock{Reentrant: true}
	ctx := locks.WithOwner(ctx, locks.NewOwner())
	require.NoError(t, locks.Do(ctx, l, func(inner context.Context) error {
		done := make(chan error)
		go func() { done <- locks.Do(inner, l, func(context.Context) error { return nil }) }()
		return <-done
	}))
	require.Zero(t, l.Count())
}

func TestDoRefusesNilArgumentsBeforeItAcquires(t *testing.T) {
	l := &fakelock.Lock{LockErr: func() error { t.Error("acquires"); return nil }}
	run := func(context.Context) error { t.Error("runs"); return nil }
	var none context.Context
	require.ErrorIs(t, locks.Do(none, l, run), locks.ErrNilContext)
	require.Error(t, locks.Do(ctx, l, nil))
	require.Error(t, locks.Do(ctx, nil, run))
}

func TestDoUnderADoneContextDoesNotRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errOne)
	err := locks.Do(ctx, &fakelock.Lock{}, func(context.Context) error { t.Error("runs"); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errOne)
}

func TestDoOfAnUnleasedLockAllocatesNothing(t *testing.T) {
	l := &fakelock.Lock{Reentrant: true}
	fn := func(context.Context) error { return nil }
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = locks.Do(ctx, l, fn) }))
}

func TestDoEndsItsFunctionsContextAtALoss(t *testing.T) {
	l := fakelock.NewLeased("")
	err := locks.Do(ctx, l, func(inner context.Context) error {
		require.NoError(t, inner.Err())
		l.Lose()
		<-inner.Done()
		require.Equal(t, locks.ErrLost, context.Cause(inner))
		return errOne
	})
	require.ErrorIs(t, err, locks.ErrLost)
	require.ErrorIs(t, err, errOne)
	require.Zero(t, l.Count())
}

func TestDoReportsALossThatNothingElseNoticed(t *testing.T) {
	for _, flaw := range []fakelock.Flaw{fakelock.LostUnlockIsFine, fakelock.LossUnnoticed} {
		l := fakelock.NewLeased(flaw)
		err := locks.Do(ctx, l, func(context.Context) error { l.Lose(); return nil })
		require.ErrorIs(t, err, locks.ErrLost, flaw)
	}
}

// lostHold is the hold of a lock that was lost of which not everything tells.
type lostHold struct {
	locks.Hold
	err  error
	lost chan struct{}
}

func (h lostHold) Err() error            { return h.err }
func (h lostHold) Lost() <-chan struct{} { return h.lost }

type lostLock struct {
	*fakelock.Lock
	hold lostHold
}

func (l lostLock) Hold(context.Context) (locks.Hold, error) { return l.hold, nil }

func TestDoReportsLossByClockOrStore(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for name, hold := range map[string]lostHold{
		"the lease is over, and nobody has noticed yet": {err: locks.ErrLost, lost: make(chan struct{})},
		"the store took it, and the lease is not over":  {lost: closed},
	} {
		t.Run(name, func(t *testing.T) {
			err := locks.Do(ctx, lostLock{&fakelock.Lock{}, hold}, func(context.Context) error { return nil })
			require.ErrorIs(t, err, locks.ErrLost)
		})
	}
}

func TestDoEndsItsContextAfterItsFunction(t *testing.T) {
	var inner context.Context
	require.NoError(t, locks.Do(ctx, fakelock.NewLeased(""), func(c context.Context) error { inner = c; return nil }))
	require.ErrorIs(t, inner.Err(), context.Canceled)
}

func TestDoLeavesNoGoroutineAfterAPanic(t *testing.T) {
	l := fakelock.NewLeased("")
	before := runtime.NumGoroutine()
	require.Panics(t, func() { _ = locks.Do(ctx, l, func(context.Context) error { panic("boom") }) })
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, time.Minute, time.Millisecond)
	require.Zero(t, l.Count())
}

func TestDoDoesNotRunAfterAnEarlyLoss(t *testing.T) {
	l := noHold{fakelock.NewLeased("")}
	err := locks.Do(ctx, l, func(context.Context) error { t.Error("runs"); return nil })
	require.ErrorIs(t, err, locks.ErrLost)
	require.Zero(t, l.Count())
}

// noHold has lost every hold when asked for it.
type noHold struct{ *fakelock.Leased }

func (noHold) Hold(context.Context) (locks.Hold, error) { return nil, locks.ErrLost }

func TestALossIsOneLineWithTheNameOfTheLock(t *testing.T) {
	named := fmt.Errorf("store: unlock %q: %w", "orders", locks.ErrLost)
	for name, c := range map[string]struct {
		unlock error
		fn     func(ctx context.Context) error
		want   string
	}{
		"fn succeeds":         {named, func(context.Context) error { return nil }, named.Error()},
		"fn returns the loss": {named, func(ctx context.Context) error { return context.Cause(ctx) }, named.Error()},
		"fn fails":            {named, func(context.Context) error { return errOne }, errOne.Error() + "; " + named.Error()},
		"the release does not know": {
			nil, func(context.Context) error { return nil }, "locks: Do: fakelock: lease lost",
		},
	} {
		l := fakelock.NewLeased(fakelock.LostUnlockIsFine)
		l.UnlockErr = fails(c.unlock)
		err := locks.Do(ctx, l, func(ctx context.Context) error {
			l.Lose()
			<-ctx.Done()
			return c.fn(ctx)
		})
		require.EqualError(t, err, c.want, name)
		require.ErrorIs(t, err, locks.ErrLost, name)
	}
}

func TestALossHasTheNameOfTheMethodThatFoundIt(t *testing.T) {
	lose := func(l *fakelock.Leased) func(context.Context) error {
		return func(context.Context) error { l.Lose(); return nil }
	}
	loseIn := func(l *fakelock.Leased) func(*int) error {
		return func(*int) error { l.Lose(); return nil }
	}
	for name, call := range map[string]func(l *fakelock.Leased) error{
		"Do": func(l *fakelock.Leased) error { return locks.Do(ctx, l, lose(l)) },
		"TryDo": func(l *fakelock.Leased) error {
			_, err := locks.TryDo(ctx, l, lose(l))
			return err
		},
		"Guarded.With": func(l *fakelock.Leased) error { return locks.NewGuarded(l, 0).With(ctx, loseIn(l)) },
		"Guarded.TryWith": func(l *fakelock.Leased) error {
			_, err := locks.NewGuarded(l, 0).TryWith(ctx, loseIn(l))
			return err
		},
	} {
		l := fakelock.NewLeased(fakelock.LostUnlockIsFine)
		l.UnlockErr = fails(nil) // the release does not know
		require.EqualError(t, call(l), "locks: "+name+": fakelock: lease lost")
	}
}

package record_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/fakelock"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

// paused is a lock whose calls stop on their way back, after the lock itself is done with them.
type paused struct {
	locks.TryLocker
	onLock, onUnlock func(ctx context.Context) // nil is no stop
}

func (p *paused) LockContext(ctx context.Context) error {
	err := p.TryLocker.LockContext(ctx)
	if p.onLock != nil {
		p.onLock(ctx)
	}
	return err
}

func (p *paused) UnlockContext(ctx context.Context) error {
	err := p.TryLocker.UnlockContext(ctx)
	if p.onUnlock != nil {
		p.onUnlock(ctx)
	}
	return err
}

// stop returns a hook that stops the calls of one owner, a channel that is closed when the first
// of them has stopped, and a function that lets them go on.
func stop(owner context.Context) (hook func(context.Context), stopped chan struct{}, goOn func()) {
	stopped, gone := make(chan struct{}), make(chan struct{})
	var once sync.Once
	return func(ctx context.Context) {
		if ctx == owner {
			once.Do(func() { close(stopped) })
			<-gone
		}
	}, stopped, sync.OnceFunc(func() { close(gone) })
}

// requireIdle ends the test unless the counters are those of a lock that was held n times and is
// free.
func requireIdle(t *testing.T, r *record.Recorder, n int) {
	t.Helper()
	s := r.Stats()[0]
	require.Zero(t, s.Held, "owners that hold")
	require.Zero(t, s.Waiting, "calls that wait")
	require.EqualValues(t, n, s.Acquired, "acquisitions")
	require.EqualValues(t, n, s.Released, "releases")
	require.EqualValues(t, n, s.Holds.Count(), "holds")
}

func TestRefusedUnlockBesideTheOwnersSpoilsNothing(t *testing.T) {
	owner, stranger := as(), as()
	hook, stopped, goOn := stop(stranger)
	r := record.New(record.Options{})
	l := r.Wrap("l", &paused{TryLocker: new(reentrant.Mutex), onUnlock: hook})
	require.NoError(t, l.LockContext(owner))
	refused := make(chan error)
	go func() { refused <- l.UnlockContext(stranger) }()
	<-stopped
	require.NoError(t, l.UnlockContext(owner))
	goOn()
	require.ErrorIs(t, <-refused, locks.ErrNotHeld)
	requireIdle(t, r, 1)
	require.NoError(t, l.LockContext(owner))
	require.EqualValues(t, 1, r.Stats()[0].Held)
	require.NoError(t, l.UnlockContext(owner))
	requireIdle(t, r, 2)
}

func TestReleaseByAnotherBeforeTheAcquisitionIsNoted(t *testing.T) {
	owner, other := as(), as()
	hook, stopped, goOn := stop(owner)
	r := record.New(record.Options{})
	l := r.Wrap("l", &paused{TryLocker: new(fair.Mutex), onLock: hook})
	acquired := make(chan error)
	go func() { acquired <- l.LockContext(owner) }()
	<-stopped
	require.NoError(t, l.UnlockContext(other), "a fair.Mutex has no owner")
	goOn()
	require.NoError(t, <-acquired)
	requireIdle(t, r, 1)
	require.NoError(t, l.LockContext(other))
	require.EqualValues(t, 1, r.Stats()[0].Held, "a later acquisition is not mistaken for that one")
	require.NoError(t, l.UnlockContext(other))
	requireIdle(t, r, 2)
}

func TestReleaseByAnotherBesideTheOwnersRefusedUnlock(t *testing.T) {
	owner, other := as(), as()
	hook, stopped, goOn := stop(owner)
	inner := &paused{TryLocker: new(fair.Mutex)}
	r := record.New(record.Options{})
	l := r.Wrap("l", inner)
	require.NoError(t, l.LockContext(owner))
	require.NoError(t, inner.UnlockContext(owner), "past the recorder")

	// The lock is free, so that the owner's unlock is refused. The other unlock takes off the hold
	// that the first is about to put back.
	inner.onUnlock = hook
	refused := make(chan error)
	go func() { refused <- l.UnlockContext(owner) }()
	<-stopped
	require.NoError(t, inner.LockContext(other), "past the recorder")
	require.NoError(t, l.UnlockContext(other))
	goOn()
	require.ErrorIs(t, <-refused, locks.ErrNotHeld)
	requireIdle(t, r, 1)
}

func TestRefusedUnlockOfAnOwnHoldKeepsIt(t *testing.T) {
	broken := errors.New("the store is unreachable")
	fail := true
	inner := &unreachable{TryLocker: new(reentrant.Mutex), err: func() error {
		if fail {
			return broken
		}
		return nil
	}}
	r := record.New(record.Options{})
	l := r.Wrap("l", inner)
	owner := as()
	require.NoError(t, l.LockContext(owner))
	require.NoError(t, l.LockContext(owner))
	for range 3 {
		require.ErrorIs(t, l.UnlockContext(owner), broken)
		require.EqualValues(t, 1, r.Stats()[0].Held)
	}
	fail = false
	require.NoError(t, l.UnlockContext(owner))
	require.EqualValues(t, 1, r.Stats()[0].Held)
	require.NoError(t, l.UnlockContext(owner))
	s := r.Stats()[0]
	require.Zero(t, s.Held)
	require.EqualValues(t, 1, s.Holds.Count())
	require.EqualValues(t, 3, s.Refused)
}

// unreachable is a lock whose UnlockContext fails without releasing while err returns an error.
type unreachable struct {
	locks.TryLocker
	err func() error
}

func (u *unreachable) UnlockContext(ctx context.Context) error {
	if err := u.err(); err != nil {
		return err
	}
	return u.TryLocker.UnlockContext(ctx)
}

func TestCountersAreExactAfterManyRefusedUnlocks(t *testing.T) {
	for name, l := range map[string]locks.TryLocker{
		"with owners":    new(reentrant.Mutex),
		"without owners": &fakelock.Lock{},
		"fair.Mutex":     new(fair.Mutex),
	} {
		t.Run(name, func(t *testing.T) {
			const parties, rounds = 4, 500
			r := record.New(record.Options{})
			w := r.Wrap("l", l)
			var wg sync.WaitGroup
			for range parties {
				wg.Go(func() {
					for range rounds {
						if err := w.LockContext(bg); err != nil {
							t.Error(err)
							return
						}
						_ = w.UnlockContext(bg) // refused if an unlock without a hold was first
					}
				})
				wg.Go(func() {
					for range rounds {
						_ = w.UnlockContext(bg)
					}
				})
			}
			wg.Wait()
			s := r.Stats()[0]
			require.Zero(t, s.Held)
			require.EqualValues(t, parties*rounds, s.Acquired)
			require.EqualValues(t, parties*rounds, s.Released)
			if name == "with owners" { // else two holds of a goroutine may count as one
				require.EqualValues(t, parties*rounds, s.Holds.Count())
			}
		})
	}
}

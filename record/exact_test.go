package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/trace"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/effort"
	"github.com/jucgo/locks/internal/test/fakelock"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
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

// requireIdle ends the test unless the counters show a lock that was held n times and is free.
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

func TestHoldsOfManyOwnersEndInAnyOrder(t *testing.T) {
	r := record.New(record.Options{})
	rw := r.WrapReadWrite("l", new(rwlock.RWMutex))
	l := rw.ReadLocker()
	owners := [4]context.Context{as(), as(), as(), as()}
	seed := effort.Seed(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 100 {
		held := map[locks.Owner]int{}
		for range 2 { // the second is a re-entry
			for _, i := range random.Perm(len(owners)) {
				require.NoError(t, l.LockContext(owners[i]))
				held[locks.CurrentOwner(owners[i])]++
			}
			i := random.IntN(len(owners)) // its next hold is the youngest
			require.NoError(t, l.UnlockContext(owners[i]))
			require.NoError(t, l.LockContext(owners[i]))
		}
		for _, i := range random.Perm(2 * len(owners)) {
			shown := map[locks.Owner]int{}
			for _, h := range r.Holds() {
				shown[h.Owner] = h.Holds
			}
			require.Equal(t, held, shown, "round %d", round)
			require.EqualValues(t, len(held), r.Stats()[0].Held)
			owner := owners[i/2]
			require.NoError(t, l.UnlockContext(owner))
			if o := locks.CurrentOwner(owner); held[o] == 1 {
				delete(held, o)
			} else {
				held[o]--
			}
		}
		require.Empty(t, r.Holds())
	}
}

// asked is a leased lock without owners that calls back when it is asked for its hold.
type asked struct {
	*fair.Mutex
	onHold func() (locks.Hold, error)
}

func (l *asked) Hold(context.Context) (locks.Hold, error) { return l.onHold() }

func TestAHoldThatEndsBeforeItIsDescribedLeavesNothing(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, trace.Start(&out), "a trace is being taken already")
	defer trace.Stop()
	r := record.New(record.Options{Held: heldProfile})
	inner := &asked{Mutex: new(fair.Mutex)}
	l := r.Wrap("l", inner)
	other := as()
	inner.onHold = func() (locks.Hold, error) { return nil, l.UnlockContext(other) }
	require.NoError(t, l.LockContext(bg))
	require.Zero(t, heldProfile.Count())
	requireIdle(t, r, 1)
}

// watching is a hold that looks at all holds when it is asked whether it is lost.
type watching struct {
	locks.Hold
	r *record.Recorder
}

func (h watching) Err() error { return fmt.Errorf("%w with %d holds", locks.ErrLost, len(h.r.Holds())) }

func TestALeasedLockMayUseTheRecorder(t *testing.T) {
	r := record.New(record.Options{})
	inner := &asked{Mutex: new(fair.Mutex)}
	l := r.Wrap("l", inner)
	inner.onHold = func() (locks.Hold, error) { return watching{r: r}, nil }
	require.NoError(t, l.LockContext(bg))
	require.EqualValues(t, 1, r.Stats()[0].Lost)
	require.NoError(t, l.UnlockContext(bg))
	requireIdle(t, r, 1)
}

func TestReleaseOfAnUnseenAcquisitionHidesNoLaterHold(t *testing.T) {
	for name, before := range map[string]func(l locks.TryLocker, fail *bool){
		"after nothing": func(locks.TryLocker, *bool) {},
		"after a release that panicked": func(l locks.TryLocker, fail *bool) {
			owner := as()
			require.NoError(t, l.LockContext(owner))
			*fail = true
			require.Panics(t, func() { _ = l.UnlockContext(owner) })
			*fail = false
			require.NoError(t, l.UnlockContext(owner))
		},
		"after an attempt that panicked": func(l locks.TryLocker, fail *bool) {
			*fail = true
			require.Panics(t, func() { _, _ = l.TryLockContext(bg) })
			require.Panics(t, func() { _ = l.LockContext(bg) })
			*fail = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			fail := false
			r := record.New(record.Options{})
			inner := &broken{new(fair.Mutex), &fail}
			l := r.Wrap("l", inner)
			before(l, &fail)
			require.NoError(t, inner.LockContext(bg), "past the recorder")
			require.NoError(t, l.UnlockContext(bg))
			require.NoError(t, l.LockContext(bg))
			require.EqualValues(t, 1, r.Stats()[0].Held)
			require.NoError(t, l.UnlockContext(bg))
			require.Zero(t, r.Stats()[0].Waiting)
		})
	}
}

// broken is a lock whose methods panic while fail is true.
type broken struct {
	locks.TryLocker
	fail *bool
}

func (l *broken) may() {
	if *l.fail {
		panic("broken")
	}
}

func (l *broken) LockContext(ctx context.Context) error {
	l.may()
	return l.TryLocker.LockContext(ctx)
}

func (l *broken) TryLockContext(ctx context.Context) (bool, error) {
	l.may()
	return l.TryLocker.TryLockContext(ctx)
}

func (l *broken) UnlockContext(ctx context.Context) error {
	l.may()
	return l.TryLocker.UnlockContext(ctx)
}

func TestAnExplicitOwnerMayAcquireDuringItsRelease(t *testing.T) {
	owner := as()
	hook, stopped, goOn := stop(owner)
	r := record.New(record.Options{})
	l := r.Wrap("l", &paused{TryLocker: new(reentrant.Mutex), onUnlock: hook})
	require.NoError(t, l.LockContext(owner))
	released := make(chan error)
	go func() { released <- l.UnlockContext(owner) }()
	<-stopped
	require.NoError(t, l.LockContext(owner))
	require.Equal(t, 1, r.Holds()[0].Holds)
	goOn()
	require.NoError(t, <-released)
	require.NoError(t, l.UnlockContext(owner))
	requireIdle(t, r, 2)
}

func TestAReleasedHoldIsNotLost(t *testing.T) {
	hook, stopped, goOn := stop(bg)
	r := record.New(record.Options{})
	inner := &pausedLease{paused{TryLocker: new(fair.Mutex), onUnlock: hook}, r}
	l := r.Wrap("l", inner)
	released := make(chan error)
	go func() {
		_ = l.LockContext(bg)
		released <- l.UnlockContext(bg)
	}()
	<-stopped
	require.Zero(t, r.Stats()[0].Lost)
	goOn()
	require.NoError(t, <-released)
}

// pausedLease is a paused lock that is lost at once.
type pausedLease struct {
	paused
	r *record.Recorder
}

func (l *pausedLease) Hold(context.Context) (locks.Hold, error) { return watching{r: l.r}, nil }

// The release of a has freed the lock, and is not noted yet.
func TestAReleaseUnderWayIsNotTakenForTheNextHold(t *testing.T) {
	a, cancel := context.WithCancel(bg) // of the goroutine that locks
	defer cancel()
	hook, stopped, goOn := stop(a)
	r := record.New(record.Options{Events: 100})
	l := r.Wrap("l", &paused{TryLocker: new(fair.Mutex), onUnlock: hook})
	released := make(chan error)
	go func() {
		_ = l.LockContext(a)
		released <- l.UnlockContext(a)
	}()
	<-stopped
	require.NoError(t, l.LockContext(bg))
	other := make(chan error)
	go func() { other <- l.UnlockContext(bg) }()
	require.NoError(t, <-other)
	goOn()
	require.NoError(t, <-released)
	events, _ := r.Events()
	for _, e := range events {
		require.GreaterOrEqual(t, e.Held, time.Duration(0), "%+v", e)
	}
	requireIdle(t, r, 2)
}

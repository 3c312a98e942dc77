package locks_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/fakelock"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/reentrant"
)

// keyedLocks returns n locks a, b, c, ... in that order, and a log of the operations on them.
func keyedLocks(n int) (ls []fakelock.Keyed, log *[]string) {
	log = new([]string)
	for i := range n {
		key := string(rune('a' + i))
		note := func(what string) func() error {
			return func() error { *log = append(*log, what+key); return nil }
		}
		ls = append(ls, fakelock.Keyed{
			Lock: &fakelock.Lock{Owned: true, LockErr: note("+"), TryErr: note("?"), UnlockErr: note("-")},
			Key:  key,
		})
	}
	return ls, log
}

func anonymous(n int) (ls []*fakelock.Lock, as []locks.TryLocker) {
	for range n {
		l := &fakelock.Lock{Reentrant: true}
		ls, as = append(ls, l), append(as, l)
	}
	return ls, as
}

func holds[L interface{ Count() int }](ls []L) (n []int) {
	for _, l := range ls {
		n = append(n, l.Count())
	}
	return n
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestMultiTakesByKeyAndReleasesInReverse(t *testing.T) {
	ls, log := keyedLocks(3)
	m := locks.Multi(ls[2], ls[0], ls[1])
	require.NoError(t, m.LockContext(ctx))
	require.Equal(t, []int{1, 1, 1}, holds(ls))
	require.NoError(t, m.UnlockContext(ctx))
	require.Equal(t, []int{0, 0, 0}, holds(ls))
	ok, err := m.TryLockContext(ctx)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, m.UnlockContext(ctx))
	require.Equal(t, "+a +b +c -c -b -a ?a ?b ?c -c -b -a", strings.Join(*log, " "))
}

func TestMultiTakesLocksWithKeysBeforeThoseWithout(t *testing.T) {
	ls, log := keyedLocks(1)
	other := &fakelock.Lock{LockErr: func() error { *log = append(*log, "+other"); return nil }}
	m := locks.Multi(other, ls[0])
	require.NoError(t, m.LockContext(ctx))
	require.Equal(t, []string{"+a", "+other"}, *log)
	require.NoError(t, m.UnlockContext(ctx))
}

func TestMultiTakesAnEmptyKeyForNone(t *testing.T) {
	m := locks.Multi(fakelock.Keyed{Lock: &fakelock.Lock{}}, fakelock.Keyed{Lock: &fakelock.Lock{}})
	require.NoError(t, m.LockContext(within(t, time.Second)), "two locks, not one")
	require.NoError(t, m.UnlockContext(ctx))
}

func TestMultiRollsBackInReverseAfterAnyFailure(t *testing.T) {
	for bad := range 3 {
		for _, try := range []bool{false, true} {
			t.Run(fmt.Sprintf("member %d, try %v", bad, try), func(t *testing.T) {
				ls, log := keyedLocks(3)
				ls[bad].LockErr, ls[bad].TryErr = fails(errOne), fails(errOne)
				m := locks.Multi(ls[0], ls[1], ls[2])
				var err error
				want := []string(nil)
				if try {
					_, err = m.TryLockContext(ctx)
				} else {
					err = m.LockContext(ctx)
				}
				require.ErrorIs(t, err, errOne)
				require.ErrorContains(t, err, fmt.Sprintf("member %d", bad))
				require.ErrorContains(t, err, fmt.Sprintf("%q", ls[bad].Key))
				require.Equal(t, []int{0, 0, 0}, holds(ls))
				for i := bad - 1; i >= 0; i-- {
					want = append(want, "-"+ls[i].Key)
				}
				require.Equal(t, want, append([]string(nil), (*log)[bad:]...))
				require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld)
			})
		}
	}
}

func TestMultiReportsAFailedRollbackBesidesItsReason(t *testing.T) {
	ls, _ := keyedLocks(2)
	ls[0].UnlockErr, ls[1].LockErr = fails(errTwo), fails(errOne)
	err := locks.Multi(ls[0], ls[1]).LockContext(ctx)
	require.ErrorIs(t, err, errOne)
	require.ErrorIs(t, err, errTwo)
}

// A member that is lost needs no release.
func TestMultiIgnoresTheLossOfAMemberThatItRollsBack(t *testing.T) {
	ls, _ := keyedLocks(2)
	ls[0].UnlockErr, ls[1].LockErr = fails(locks.ErrLost), fails(errOne)
	err := locks.Multi(ls[0], ls[1]).LockContext(ctx)
	require.ErrorIs(t, err, errOne)
	require.NotErrorIs(t, err, locks.ErrLost)
	other := locks.WithOwner(ctx, locks.NewOwner())
	ls[1].LockErr = nil
	require.NoError(t, ls[1].LockContext(other))
	ok, err := locks.Multi(ls[0], ls[1]).TryLockContext(ctx)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestMultiRollsBackWhenAMemberPanics(t *testing.T) {
	ls, _ := keyedLocks(2)
	ls[1].LockErr = func() error { panic("boom") }
	require.PanicsWithValue(t, "boom", func() { _ = locks.Multi(ls[0], ls[1]).LockContext(ctx) })
	require.Equal(t, []int{0, 0}, holds(ls))
}

func TestMultiRollsBackUnderACancelledContext(t *testing.T) {
	ls, _ := keyedLocks(2)
	for i := range ls {
		ls[i].Flaw = fakelock.CancelledUnlockFails
	}
	other := locks.WithOwner(ctx, locks.NewOwner())
	require.NoError(t, ls[1].LockContext(other))
	cancellable, cancel := context.WithCancelCause(ctx)
	result := make(chan error)
	go func() { result <- locks.Multi(ls[0], ls[1]).LockContext(cancellable) }()
	require.Eventually(t, func() bool { return ls[1].Waiting() == 1 }, time.Minute, 100*time.Microsecond)
	cancel(errOne)
	err := <-result
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errOne)
	require.Equal(t, []int{0, 1}, holds(ls))
	require.NoError(t, ls[1].UnlockContext(other))
}

func TestMultiTryTakesNoneIfOneIsHeld(t *testing.T) {
	ls, as := anonymous(3)
	m := locks.Multi(as...)
	other := locks.WithOwner(ctx, locks.NewOwner())
	for i := range ls {
		require.NoError(t, ls[i].LockContext(other))
		ok, err := m.TryLockContext(ctx)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, ls[i].UnlockContext(other))
		require.Equal(t, []int{0, 0, 0}, holds(ls))
	}
}

func TestMultiTriesToReleaseEveryMember(t *testing.T) {
	ls, _ := keyedLocks(3)
	ls[0].UnlockErr, ls[2].UnlockErr = fails(errOne), fails(errTwo)
	m := locks.Multi(ls[0], ls[1], ls[2])
	require.NoError(t, m.LockContext(ctx))
	err := m.UnlockContext(ctx)
	require.ErrorIs(t, err, errOne)
	require.ErrorIs(t, err, errTwo)
	require.Equal(t, []int{0, 0, 0}, holds(ls))
	require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld, "the hold has ended all the same")
}

// breaking is a lock whose unlock ends in a panic, or in Goexit.
type breaking struct {
	fakelock.Keyed
	end func()
}

func (b *breaking) UnlockContext(context.Context) error { b.end(); return nil }

func TestMultiNamesAllFailuresInOneLine(t *testing.T) {
	errTwo := errors.New("two")
	broken := func() []fakelock.Keyed {
		ls, _ := keyedLocks(3)
		ls[0].UnlockErr, ls[1].UnlockErr = fails(errOne), fails(errTwo)
		return ls
	}
	all := func(m locks.TryLocker) error {
		require.NoError(t, m.LockContext(ctx))
		return m.UnlockContext(ctx)
	}
	for name, failing := range map[string]func() error{
		"unlock": func() error { ls := broken(); return all(locks.Multi(ls[0], ls[1], ls[2])) },
		"panic": func() error {
			ls := broken()
			return all(locks.Multi(ls[0], ls[1], &breaking{ls[2], func() { panic("broken") }}))
		},
		"roll back": func() error {
			ls := broken()
			ls[2].LockErr = fails(errors.New("three"))
			return locks.Multi(ls[0], ls[1], ls[2]).LockContext(ctx)
		},
		"roll back of a try": func() error {
			ls := broken()
			ls[2].TryErr = fails(errors.New("three"))
			_, err := locks.Multi(ls[0], ls[1], ls[2]).TryLockContext(ctx)
			return err
		},
		"do": func() error {
			ls := broken()
			return locks.Do(ctx, locks.Multi(ls[0], ls[1]), func(context.Context) error {
				return errors.Join(errors.New("three"), io.EOF)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := failing()
			require.ErrorIs(t, err, errOne)
			require.ErrorIs(t, err, errTwo)
			require.NotContains(t, err.Error(), "\n")
			for _, part := range []string{"unlock member 0", "unlock member 1", "; "} {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestMultiReleasesTheOthersWhenAMemberPanics(t *testing.T) {
	for _, p := range []any{"broken", errOne} {
		ls, _ := keyedLocks(3)
		a, b, c := ls[0], &breaking{ls[1], func() { panic(p) }}, ls[2]
		m := locks.Multi(a, b, c)
		require.NoError(t, m.LockContext(ctx))
		err := m.UnlockContext(ctx)
		require.ErrorContains(t, err, "panic in unlock of member 1")
		require.ErrorContains(t, err, fmt.Sprint(p))
		require.Equal(t, p == errOne, errors.Is(err, errOne))
		require.Zero(t, a.Count())
		require.Zero(t, c.Count())
		require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld)
	}
}

// speaker is a value of the program whose methods may take the lock that has just panicked.
type speaker struct{ asked *bool }

func (s speaker) String() string { *s.asked = true; return "" }
func (s speaker) Error() string  { *s.asked = true; return "" }

// spoken is a speaker that is not an error.
type spoken struct{ fmt.Stringer }

func TestMultiCallsNoMethodOfAPanicsValue(t *testing.T) {
	asked := false
	for _, p := range []any{speaker{&asked}, spoken{speaker{&asked}}} {
		ls, _ := keyedLocks(2)
		m := locks.Multi(ls[0], &breaking{ls[1], func() { panic(p) }})
		require.NoError(t, m.LockContext(ctx))
		require.Error(t, m.UnlockContext(ctx))
		require.False(t, asked, "%T", p)
	}
}

func TestMultiReleasesTheOthersAfterAMembersGoexit(t *testing.T) {
	ls, _ := keyedLocks(3)
	a, c := ls[0], ls[2]
	m := locks.Multi(a, &breaking{ls[1], runtime.Goexit}, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.LockContext(ctx)
		_ = m.UnlockContext(ctx)
	}()
	<-done
	require.Zero(t, a.Count())
	require.Zero(t, c.Count())
}

func TestMultiCountsTheHoldsOfSeveralOwners(t *testing.T) {
	m := locks.Multi() // which every owner gets
	owners := make([]context.Context, 3)
	for i := range owners {
		owners[i] = locks.WithOwner(ctx, locks.NewOwner())
		require.NoError(t, m.LockContext(owners[i]))
		require.NoError(t, m.LockContext(owners[i]))
	}
	require.NoError(t, m.LockContext(ctx))
	for _, o := range append(owners, owners...) {
		require.NoError(t, m.UnlockContext(o))
	}
	for _, o := range owners {
		require.ErrorIs(t, m.UnlockContext(o), locks.ErrNotHeld)
	}
	require.NoError(t, m.UnlockContext(ctx))
}

func TestMultiCountsTheNestedHoldsOfAnOwner(t *testing.T) {
	ls, as := anonymous(2)
	m := locks.Multi(as...)
	for range 2 { // the second round begins like the first
		for n := 1; n <= 3; n++ {
			require.NoError(t, m.LockContext(ctx))
			require.Equal(t, []int{n, n}, holds(ls))
		}
		for n := 2; n >= 0; n-- {
			require.NoError(t, m.UnlockContext(ctx))
			require.Equal(t, []int{n, n}, holds(ls))
			require.NoError(t, locks.CheckMulti(m))
		}
		require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld)
	}
}

func TestMultiOverReadViewsHasTwoOwners(t *testing.T) {
	for last := range 2 {
		rw := &fakelock.RW{}
		m := locks.Multi(rw.ReadLocker())
		owners := []context.Context{ctx, locks.WithOwner(ctx, locks.NewOwner())}
		require.NoError(t, m.LockContext(owners[0]))
		require.NoError(t, m.LockContext(owners[1]))
		require.NoError(t, m.UnlockContext(owners[1-last]))
		require.ErrorIs(t, m.UnlockContext(owners[1-last]), locks.ErrNotHeld)
		require.NoError(t, m.LockContext(owners[1-last]), "again, while the other still holds")
		require.NoError(t, m.UnlockContext(owners[last]))
		require.ErrorIs(t, m.UnlockContext(owners[last]), locks.ErrNotHeld)
		require.NoError(t, m.UnlockContext(owners[1-last]))
		ok, err := rw.WriteLocker().TryLockContext(ctx)
		require.NoError(t, err)
		require.True(t, ok, "no reader is left")
	}
}

func TestMultiUnlockByAnotherOwnerReleasesNothing(t *testing.T) {
	l := fakelock.NewLeased("")
	m := locks.Multi(l).(locks.Leased)
	other := locks.WithOwner(ctx, locks.NewOwner())
	for n := 1; n <= 2; n++ { // the second hold is nested
		require.NoError(t, m.LockContext(ctx))
		require.ErrorIs(t, m.UnlockContext(other), locks.ErrNotHeld)
		_, err := m.Hold(other)
		require.ErrorIs(t, err, locks.ErrNotHeld)
		require.Equal(t, n, l.Count())
	}
	require.NoError(t, m.UnlockContext(ctx))
	require.NoError(t, m.UnlockContext(ctx))
	require.Zero(t, l.Count())
}

// open is a leased lock that admits every owner any number of times.
type open struct {
	mu    sync.Mutex
	count map[locks.Owner]int
}

func (l *open) LockContext(ctx context.Context) error {
	_, err := l.TryLockContext(ctx)
	return err
}

func (l *open) TryLockContext(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == nil {
		l.count = map[locks.Owner]int{}
	}
	l.count[locks.CurrentOwner(ctx)]++
	return true, nil
}

func (l *open) UnlockContext(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := locks.CurrentOwner(ctx)
	if l.count[o] == 0 {
		return errOne // not ErrNotHeld: a Multi without a hold does not come here
	}
	l.count[o]--
	return nil
}

func (l *open) Hold(context.Context) (locks.Hold, error) { return openHold{}, nil }

type openHold struct{ locks.Hold }

func (openHold) Extend(context.Context, time.Duration) error { return nil }

func TestEveryMultiRunAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &open{}
		m := locks.Multi(l).(locks.Leased)
		owners := []context.Context{
			ctx, locks.WithOwner(ctx, locks.NewOwner()), locks.WithOwner(ctx, locks.NewOwner()),
		}
		want := make([]int, len(owners))
		current := make([]locks.Hold, len(owners)) // nil until Hold is called
		var ended []locks.Hold
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(owners)-1).Draw(t, "owner")
			switch rapid.SampledFrom([]string{"lock", "try", "unlock", "unlock", "hold"}).Draw(t, "step") {
			case "lock":
				require.NoError(t, m.LockContext(owners[i]))
				want[i]++
			case "try":
				ok, err := m.TryLockContext(owners[i])
				require.NoError(t, err)
				require.True(t, ok)
				want[i]++
			case "unlock":
				err := m.UnlockContext(owners[i])
				if want[i] == 0 {
					require.ErrorIs(t, err, locks.ErrNotHeld)
					break
				}
				require.NoError(t, err)
				if want[i]--; want[i] == 0 && current[i] != nil {
					ended, current[i] = append(ended, current[i]), nil
				}
			case "hold":
				h, err := m.Hold(owners[i])
				if want[i] == 0 {
					require.ErrorIs(t, err, locks.ErrNotHeld)
					break
				}
				require.NoError(t, err)
				if current[i] != nil {
					require.Same(t, current[i], h, "one hold until the last release")
				}
				require.NotContains(t, ended, h)
				current[i] = h
			}
			require.NoError(t, locks.CheckMulti(m))
			for i, o := range owners {
				require.Equal(t, want[i], l.count[locks.CurrentOwner(o)])
				if current[i] != nil {
					require.NoError(t, current[i].Extend(ctx, time.Second))
				}
			}
			for _, h := range ended {
				require.ErrorIs(t, h.Extend(ctx, time.Second), locks.ErrLost)
			}
		}
	})
}

func TestGoroutinesShareTheHoldsOfOneOwner(t *testing.T) {
	l := &open{}
	m := locks.Multi(l).(locks.Leased)
	owners := []context.Context{
		locks.WithOwner(ctx, locks.NewOwner()), locks.WithOwner(ctx, locks.NewOwner()),
	}
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for g := range errs {
		wg.Go(func() {
			o := owners[g%len(owners)]
			for n := range 1000 {
				errs[g] = errors.Join(errs[g], m.LockContext(o))
				if n%3 == 0 {
					h, err := m.Hold(o)
					if err == nil {
						err = h.Extend(ctx, time.Second)
					}
					errs[g] = errors.Join(errs[g], err)
				}
				errs[g] = errors.Join(errs[g], m.UnlockContext(o))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, locks.CheckMulti(m))
	for _, o := range owners {
		require.Zero(t, l.count[locks.CurrentOwner(o)])
		require.ErrorIs(t, m.UnlockContext(o), locks.ErrNotHeld)
	}
}

// An empty Multi leaves nothing but its own steps to collide.
func TestMultiLosesNoHoldWhenItsStepsCollide(t *testing.T) {
	for owners := 1; owners <= 2; owners++ {
		m := locks.Multi()
		as := []context.Context{locks.WithOwner(ctx, locks.NewOwner()), locks.WithOwner(ctx, locks.NewOwner())}
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for g := range errs {
			wg.Go(func() {
				for range 20000 {
					errs[g] = cmp.Or(errs[g], m.LockContext(as[g%owners]), m.UnlockContext(as[g%owners]))
				}
			})
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		require.NoError(t, locks.CheckMulti(m))
		for _, o := range as {
			require.ErrorIs(t, m.UnlockContext(o), locks.ErrNotHeld)
		}
	}
}

func TestMultiLosesNoUnlockBesideAHold(t *testing.T) {
	m := locks.Multi(&open{}).(locks.Leased)
	o := locks.WithOwner(ctx, locks.NewOwner())
	var (
		wg   sync.WaitGroup
		done atomic.Bool
		err  error
	)
	wg.Go(func() {
		for range 20000 {
			err = cmp.Or(err, m.LockContext(o), m.UnlockContext(o))
		}
		done.Store(true)
	})
	for !done.Load() {
		if _, err := m.Hold(o); err != nil {
			require.ErrorIs(t, err, locks.ErrNotHeld)
		}
	}
	wg.Wait()
	require.NoError(t, err)
	require.NoError(t, locks.CheckMulti(m))
	require.ErrorIs(t, m.UnlockContext(o), locks.ErrNotHeld)
}

func TestMultiOfGoroutineOwnedLocksAllocatesNothing(t *testing.T) {
	m := locks.Multi(new(reentrant.Mutex), new(reentrant.Mutex))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = m.LockContext(ctx)
		_ = m.UnlockContext(ctx)
	}))
}

func TestMultiUnlockWithoutAHoldReleasesNothing(t *testing.T) {
	ls, as := anonymous(2)
	m := locks.Multi(as...)
	require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld)
	require.NoError(t, ls[0].LockContext(ctx))
	require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld, "a member's hold is not the Multi's")
	require.Equal(t, []int{1, 0}, holds(ls))
	require.NoError(t, ls[0].UnlockContext(ctx))
	require.NoError(t, m.LockContext(ctx))
	require.ErrorIs(t, locks.Multi(as...).UnlockContext(ctx), locks.ErrNotHeld, "another Multi's hold")
	require.NoError(t, m.UnlockContext(ctx))
}

func TestMultiAcquiresALockListedTwiceOnce(t *testing.T) {
	l := &fakelock.Lock{}
	k := fakelock.Keyed{Lock: &fakelock.Lock{}, Key: "k"}
	v := fakelock.Value{L: &fakelock.Lock{}}
	for _, m := range []locks.TryLocker{
		locks.Multi(l, l), locks.Multi(k, k), locks.Multi(v, v), locks.Multi(l, locks.Multi(l, k), v, k, v),
	} {
		require.NoError(t, m.LockContext(within(t, time.Second)))
		require.NoError(t, m.UnlockContext(ctx))
	}
}

// wrapped is a lock around another, as package record makes them.
type wrapped struct {
	locks.TryLocker
	calls *int
}

func (w *wrapped) LockContext(ctx context.Context) error {
	*w.calls++
	return w.TryLocker.LockContext(ctx)
}

func (w *wrapped) Unwrap() locks.TryLocker { return w.TryLocker }

func TestMultiKnowsAWrappedLockAsTheInner(t *testing.T) {
	ls, log := keyedLocks(3)
	calls := 0
	wrap := func(l locks.TryLocker) locks.TryLocker { return &wrapped{l, &calls} }
	m := locks.Multi(wrap(ls[2]), wrap(wrap(ls[0])), ls[1], ls[0], wrap(ls[2]))
	require.NoError(t, m.LockContext(within(t, time.Second)))
	require.NoError(t, m.UnlockContext(ctx))
	require.Equal(t, []string{"+a", "+b", "+c", "-c", "-b", "-a"}, *log, "by key, and each once")
	require.Equal(t, 3, calls, "through its wraps")

	_, as := anonymous(2)
	for range 50 { // whatever the addresses of the wraps are
		one := locks.Multi(wrap(as[0]), wrap(as[1])).(fmt.Stringer).String()
		other := locks.Multi(wrap(as[1]), wrap(as[0])).(fmt.Stringer).String()
		require.NotEqual(t, one, other, "the same order, so the members' numbers differ")
	}
	none := &wrapped{calls: &calls}
	require.Contains(t, locks.Multi(none).(fmt.Stringer).String(), "wrapped", "what wraps nothing is a lock itself")
}

func TestMultiTakesTheMembersOfANestedMulti(t *testing.T) {
	ls, log := keyedLocks(4)
	leased := fakelock.NewLeased("")
	m := locks.Multi(locks.Multi(ls[3], locks.Multi(ls[1], leased)), ls[0], ls[2])
	require.Implements(t, (*locks.Leased)(nil), m)
	require.NoError(t, m.LockContext(ctx))
	require.Equal(t, []string{"+a", "+b", "+c", "+d"}, *log)
	require.Equal(t, 1, leased.Count())
	require.NoError(t, m.UnlockContext(ctx))
}

func TestMultiOfNothingAdmitsEverybody(t *testing.T) {
	m := locks.Multi()
	require.NoError(t, m.LockContext(ctx))
	other := locks.WithOwner(ctx, locks.NewOwner())
	ok, err := m.TryLockContext(other)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, m.UnlockContext(other))
	require.ErrorIs(t, m.UnlockContext(other), locks.ErrNotHeld)
	require.NoError(t, m.UnlockContext(ctx))
	done, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, m.LockContext(done), context.Canceled)
}

func TestMultiPanicsOnANilMember(t *testing.T) {
	var none *fakelock.Lock
	require.PanicsWithValue(t, "locks: Multi: member 1 is nil", func() { locks.Multi(&fakelock.Lock{}, nil) })
	require.Panics(t, func() { locks.Multi(none) })
}

func TestMultiNamesItsMembers(t *testing.T) {
	ls, _ := keyedLocks(2)
	require.Equal(t, `locks.Multi[member 1 (fakelock.Keyed "a"), member 0 (fakelock.Keyed "b")]`,
		fmt.Sprint(locks.Multi(ls[1], ls[0])))
	of := fakelock.Keyed{Lock: ls[0].Lock, Key: "a\x00store"}
	require.Equal(t, `locks.Multi[member 0 (fakelock.Keyed "a")]`, fmt.Sprint(locks.Multi(of)), "and not the store")
}

func TestMultiOverReadWriteViewsHasOneOrder(t *testing.T) {
	rw := &fakelock.RW{}
	one := fmt.Sprint(locks.Multi(rw.ReadLocker(), rw.WriteLocker()))
	two := fmt.Sprint(locks.Multi(rw.WriteLocker(), rw.ReadLocker()))
	require.Less(t, strings.Index(one, "Reader"), strings.Index(one, "Writer"))
	require.Less(t, strings.Index(two, "Reader"), strings.Index(two, "Writer"))
}

// hammer lets goroutines take Multis over the same locks, listed in orders of their own.
func hammer(t *testing.T, as []locks.TryLocker) {
	const goroutines, rounds = 4, 200
	ctx := within(t, 20*time.Second)
	var (
		wg    sync.WaitGroup
		errs  = make([]error, goroutines)
		count int
	)
	for g := range goroutines {
		wg.Go(func() {
			mine := make([]locks.TryLocker, len(as))
			for i := range as {
				j := (i + g) % len(as)
				if g%2 == 1 {
					j = len(as) - 1 - j
				}
				mine[i] = as[j]
			}
			m := locks.Multi(mine...)
			for range rounds {
				errs[g] = errors.Join(errs[g], locks.Do(ctx, m, func(context.Context) error {
					count++
					runtime.Gosched()
					return nil
				}))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, goroutines*rounds, count)
}

func TestMultisInOppositeOrdersDoNotDeadlock(t *testing.T) {
	_, as := anonymous(3)
	hammer(t, as)
}

func TestMultisOfUnorderedLocksDoNotDeadlock(t *testing.T) {
	ls, as := anonymous(3)
	for i := range as {
		as[i] = fakelock.Value{L: ls[i]}
	}
	hammer(t, as)
	require.Equal(t, []int{0, 0, 0}, holds(ls))
}

func TestMultiWithoutOrderWaitsOnlyWithoutHolds(t *testing.T) {
	ls, _ := anonymous(2)
	m := locks.Multi(fakelock.Value{L: ls[0]}, fakelock.Value{L: ls[1]})
	for held := range ls {
		other := locks.WithOwner(ctx, locks.NewOwner())
		require.NoError(t, ls[held].LockContext(other))
		result := make(chan error)
		go func() {
			err := m.LockContext(within(t, time.Minute))
			result <- errors.Join(err, m.UnlockContext(ctx))
		}()
		require.Eventually(t, func() bool { return ls[held].Waiting() == 1 }, time.Minute, 100*time.Microsecond)
		require.Zero(t, ls[1-held].Count())
		require.NoError(t, ls[held].UnlockContext(other))
		require.NoError(t, <-result)
	}
}

func TestAnUnorderedMultiRollsBackAfterAnyFailure(t *testing.T) {
	for bad := range 3 {
		ls, as := anonymous(3)
		for i := range as {
			as[i] = fakelock.Value{L: ls[i]}
		}
		ls[bad].LockErr, ls[bad].TryErr = fails(errOne), fails(errOne)
		err := locks.Multi(as...).LockContext(ctx)
		require.ErrorIs(t, err, errOne)
		require.ErrorContains(t, err, fmt.Sprintf("member %d", bad))
		require.Equal(t, []int{0, 0, 0}, holds(ls))
	}
}

func TestMultiOverAnySelectionTakesAllOrNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ls, as := anonymous(5)
		for i := range as {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				as[i] = fakelock.Keyed{Lock: ls[i], Key: fmt.Sprint(i)}
			case 1:
				as[i] = fakelock.Value{L: ls[i]}
			}
		}
		picks := rapid.SliceOfN(rapid.IntRange(0, len(as)-1), 0, 8).Draw(t, "members")
		want := make([]int, len(as))
		var members []locks.TryLocker
		for _, p := range picks {
			want[p] = 1
			members = append(members, as[p])
		}
		if cut := rapid.IntRange(0, len(members)).Draw(t, "nested"); cut > 0 {
			members = append(members[cut:], locks.Multi(members[:cut]...))
		}
		m := locks.Multi(members...)
		none := make([]int, len(as))
		// Another owner may hold a member, or a member may fail.
		other := locks.WithOwner(ctx, locks.NewOwner())
		obstacle := rapid.IntRange(-1, len(as)-1).Draw(t, "obstacle")
		held := obstacle >= 0 && rapid.Bool().Draw(t, "held rather than failing")
		if held {
			require.NoError(t, ls[obstacle].LockContext(other))
			none[obstacle] = 1
		} else if obstacle >= 0 {
			ls[obstacle].LockErr, ls[obstacle].TryErr = fails(errOne), fails(errOne)
		}
		ok, err := m.TryLockContext(ctx)
		if obstacle >= 0 && want[obstacle] == 1 {
			require.False(t, ok)
			require.Equal(t, held, err == nil)
			require.Equal(t, none, holds(ls))
			if held {
				short, cancel := context.WithTimeout(ctx, 100*time.Microsecond)
				require.ErrorIs(t, m.LockContext(short), context.DeadlineExceeded)
				cancel()
			} else {
				require.ErrorIs(t, m.LockContext(ctx), errOne)
			}
			require.Equal(t, none, holds(ls))
			require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrNotHeld)
			return
		}
		require.True(t, ok)
		require.NoError(t, err)
		require.NoError(t, m.LockContext(ctx), "once more")
		for i := range want {
			want[i] = 2*want[i] + none[i]
		}
		require.Equal(t, want, holds(ls))
		require.NoError(t, m.UnlockContext(ctx))
		require.NoError(t, m.UnlockContext(ctx))
		require.Equal(t, none, holds(ls))
	})
}

// queues are the locks whose queues a Multi waits in, by the Multi.
type queues map[locks.TryLocker][]interface{ Waiting() int }

// waiting returns how many goroutines wait for a Multi: each of them in the queue of one member.
func (q queues) waiting(multi locks.TryLocker) (n int) {
	for _, l := range q[multi] {
		n += l.Waiting()
	}
	return n
}

func TestMultiIsATryLocker(t *testing.T) {
	for name, as := range map[string]func(l *fakelock.Lock) locks.TryLocker{
		"ordered":   func(l *fakelock.Lock) locks.TryLocker { return l },
		"unordered": func(l *fakelock.Lock) locks.TryLocker { return fakelock.Value{L: l} },
	} {
		t.Run(name, func(t *testing.T) {
			of := queues{}
			lockstest.TestTryLocker(t, lockstest.Config{
				New: func(testing.TB) locks.TryLocker {
					a, b := &fakelock.Lock{Reentrant: true}, &fakelock.Lock{Reentrant: true}
					m := locks.Multi(as(a), as(b))
					of[m] = append(of[m], a, b)
					return m
				},
				Waiting:   of.waiting,
				Reentrant: true,
				// The tries of two Multis may spoil each other.
				SpuriousTry: true,
			})
		})
	}
}

func TestMultiOfLocksWithoutOwnersHasOwners(t *testing.T) {
	of := queues{}
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(testing.TB) locks.TryLocker {
			a, b := new(fakelock.Lock), new(fakelock.Lock)
			m := locks.Multi(a, b)
			of[m] = append(of[m], a, b)
			return m
		},
		Waiting:     of.waiting,
		Owned:       true,
		SpuriousTry: true,
	})
}

func TestMultiOfLeasedLocksIsLeased(t *testing.T) {
	lost, of := map[locks.TryLocker]*fakelock.Leased{}, queues{}
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(testing.TB) locks.TryLocker {
			a, b, c := fakelock.NewLeased(""), &fakelock.Lock{Reentrant: true}, fakelock.NewLeased("")
			m := locks.Multi(a, b, c)
			lost[m] = c
			of[m] = append(of[m], a, b, c)
			return m
		},
		Waiting:     of.waiting,
		Reentrant:   true,
		SpuriousTry: true,
		Leased:      true,
		Lose:        func(l locks.TryLocker) { lost[l].Lose() },
	})
}

func TestMultiOfUnleasedLocksIsUnleased(t *testing.T) {
	_, as := anonymous(2)
	_, ok := locks.Multi(as...).(locks.Leased)
	require.False(t, ok)
}

func TestAMultiHoldIsLostWithAnyMember(t *testing.T) {
	for i := range 2 {
		ls := []*fakelock.Leased{fakelock.NewLeased(""), fakelock.NewLeased("")}
		m := locks.Multi(ls[0], ls[1]).(locks.Leased)
		require.NoError(t, m.LockContext(ctx))
		h, err := m.Hold(ctx)
		require.NoError(t, err)
		require.NoError(t, h.Err())
		lost := h.Lost()
		ls[i].Lose()
		<-lost
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrLost)
		require.Equal(t, []int{0, 0}, holds(ls))
	}
}

// The goroutine that watches the member may run later than the caller of Err.
func TestAMultiHoldTellsALossBeforeErrReturnsIt(t *testing.T) {
	for range 500 {
		l := fakelock.NewLeased("")
		m := locks.Multi(l).(locks.Leased)
		require.NoError(t, m.LockContext(ctx))
		h, err := m.Hold(ctx)
		require.NoError(t, err)
		lost := h.Lost()
		l.Lose()
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		select {
		case <-lost:
		default:
			t.Fatal("Err returns a loss, and Lost is open")
		}
		require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrLost)
	}
}

func TestAnUnnoticedLossEndsAMultiHold(t *testing.T) {
	l := fakelock.NewLeased("")
	m := locks.Multi(l).(locks.Leased)
	require.NoError(t, m.LockContext(ctx))
	h, err := m.Hold(ctx)
	require.NoError(t, err)
	l.Lose()
	select {
	case <-h.Lost():
	default:
		t.Error("Lost is open")
	}
	require.ErrorIs(t, m.UnlockContext(ctx), locks.ErrLost)
}

func TestAMultiHoldEndsEarliestAndExtendsWhole(t *testing.T) {
	ls := []*fakelock.Leased{fakelock.NewLeased(""), fakelock.NewLeased("")}
	m := locks.Multi(ls[0], ls[1]).(locks.Leased)
	require.NoError(t, m.LockContext(ctx))
	first, err := ls[0].Hold(ctx)
	require.NoError(t, err)
	require.NoError(t, first.Extend(ctx, time.Hour))
	h, err := m.Hold(ctx)
	require.NoError(t, err)
	require.Zero(t, h.Token())
	deadline, ok := h.Deadline()
	require.True(t, ok)
	require.WithinDuration(t, time.Now().Add(time.Minute), deadline, 30*time.Second)
	require.NoError(t, h.Extend(ctx, 2*time.Hour))
	deadline, _ = h.Deadline()
	require.Greater(t, time.Until(deadline), time.Hour)
	require.NoError(t, m.UnlockContext(ctx))
	require.ErrorIs(t, h.Extend(ctx, time.Hour), locks.ErrLost)
}

func TestAFailedExtensionOfAMultiIsOneLine(t *testing.T) {
	ls := []*fakelock.Leased{fakelock.NewLeased("a"), fakelock.NewLeased("b")}
	m := locks.Multi(ls[0], ls[1]).(locks.Leased)
	require.NoError(t, m.LockContext(ctx))
	h, err := m.Hold(ctx)
	require.NoError(t, err)
	for _, l := range ls {
		l.Lose()
	}
	err = h.Extend(ctx, time.Hour)
	require.ErrorIs(t, err, locks.ErrLost)
	require.Contains(t, err.Error(), "; ")
	require.NotContains(t, err.Error(), "\n")
}

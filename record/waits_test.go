package record_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

func TestHoldsAndWaitsOfTheMomentAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{Waits: true})
		mu := new(fair.Mutex)
		l := r.Wrap("l", mu)
		require.NoError(t, l.LockContext(bg))
		holder := locks.CurrentOwner(bg)
		taken := time.Now()
		time.Sleep(time.Second)
		asked := time.Now()
		var waiter locks.Owner
		go func() {
			waiter = locks.CurrentOwner(bg)
			_ = l.LockContext(bg)
		}()
		synctest.Wait()
		time.Sleep(time.Second)

		holds, waits := r.Holds(), r.Waits()
		require.Len(t, holds, 1)
		require.WithinDuration(t, taken, holds[0].Since, 0)
		holds[0].Since = time.Time{}
		require.Equal(t, []record.Hold{{Lock: "l", Of: mu, Owner: holder, Holds: 1}}, holds)
		require.Len(t, waits, 1)
		require.WithinDuration(t, asked, waits[0].Since, 0)
		waits[0].Since = time.Time{}
		require.Equal(t, []record.Wait{{Lock: "l", Of: mu, Owner: waiter, Calls: 1}}, waits)

		require.NoError(t, l.UnlockContext(bg))
		synctest.Wait()
		require.Empty(t, r.Waits())
		require.Equal(t, waiter, r.Holds()[0].Owner)
		require.NoError(t, l.UnlockContext(bg)) // a lock without owners
		require.Empty(t, r.Holds())
	})
}

func TestSeveralWaitsOfOneOwnerAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{Waits: true})
		l := r.Wrap("l", new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		o := locks.NewOwner()
		ctx, cancel := context.WithCancel(locks.WithOwner(bg, o))
		for range 2 {
			go func() { _ = l.LockContext(ctx) }()
		}
		synctest.Wait()
		require.Len(t, r.Waits(), 1)
		require.Equal(t, 2, r.Waits()[0].Calls)
		cancel()
		synctest.Wait()
		require.Empty(t, r.Waits())
		require.NoError(t, l.UnlockContext(bg))
	})
}

func TestWaitsAreListedOnlyOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		l := r.Wrap("l", new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		go func() { _ = l.LockContext(bg) }()
		synctest.Wait()
		require.Nil(t, r.Waits())
		require.NoError(t, l.UnlockContext(bg))
		synctest.Wait()
		require.NoError(t, l.UnlockContext(bg))
	})
}

var heldProfile = pprof.NewProfile("record.test.held")

// heldAt returns what the profile of holds shows.
func heldAt(t *testing.T) string {
	var b bytes.Buffer
	require.NoError(t, heldProfile.WriteTo(&b, 1))
	return b.String()
}

//go:noinline
func lockHere(l locks.TryLocker) error { return l.LockContext(bg) }

//go:noinline
func tryHere(l locks.TryLocker) (bool, error) { return l.TryLockContext(bg) }

//go:noinline
func lockPlainlyHere(l sync.Locker) { l.Lock() }

func TestTheProfileHasHoldsUntilTheLastUnlock(t *testing.T) {
	r := record.New(record.Options{Held: heldProfile})
	l := r.Wrap("l", new(reentrant.Mutex))
	acquire := map[string]func(){
		"lockHere":        func() { require.NoError(t, lockHere(l)) },
		"tryHere":         func() { ok, err := tryHere(l); require.True(t, ok); require.NoError(t, err) },
		"lockPlainlyHere": func() { lockPlainlyHere(l.(sync.Locker)) },
	}
	for name, lock := range acquire {
		lock()
		require.Equal(t, 1, heldProfile.Count())
		shown := heldAt(t)
		require.Regexp(t, `(?m)^1 @ .*\n#\s+\S+\s+github.com/jucgo/locks/record_test\.`+name+`\+`, shown)
		require.NoError(t, l.LockContext(bg))
		require.Equal(t, shown, heldAt(t), "a re-entry adds nothing")
		require.NoError(t, l.UnlockContext(bg))
		require.Equal(t, 1, heldProfile.Count())
		require.NoError(t, l.UnlockContext(bg))
		require.Zero(t, heldProfile.Count())
	}
}

func TestARefusedUnlockKeepsTheProfiledHold(t *testing.T) {
	r := record.New(record.Options{Held: heldProfile})
	var refuse error
	l := r.Wrap("l", refusing{new(reentrant.Mutex), &refuse})
	require.NoError(t, lockHere(l))
	before := heldAt(t)
	refuse = locks.ErrNotHeld
	require.Error(t, l.UnlockContext(bg))
	require.Equal(t, before, heldAt(t), "with the place of its acquisition")
	refuse = locks.ErrLost
	require.Error(t, l.UnlockContext(bg))
	require.Zero(t, heldProfile.Count(), "a lost hold is over")
}

// refusing is a lock that refuses to unlock.
type refusing struct {
	locks.TryLocker
	err *error
}

func (l refusing) UnlockContext(ctx context.Context) error {
	if *l.err != nil {
		return *l.err
	}
	return l.TryLocker.UnlockContext(ctx)
}

func TestManyEndedHoldsLeaveAnEmptyProfile(t *testing.T) {
	r := record.New(record.Options{Held: heldProfile, Waits: true})
	l := r.Wrap("l", new(fair.Mutex))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if l.LockContext(bg) == nil {
					go func() { _ = l.UnlockContext(bg) }() // perhaps the hold of another goroutine
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, l.LockContext(bg)) // after the last unlock
	require.NoError(t, l.UnlockContext(bg))
	require.Eventually(t, func() bool { return heldProfile.Count() == 0 && len(r.Holds()) == 0 },
		time.Minute, time.Millisecond)
}

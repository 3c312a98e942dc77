package record_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
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

// during is an open lock whose next unlock calls a function, and returns its error.
type during struct {
	open
	unlock func() error
}

func (d *during) UnlockContext(context.Context) error {
	f := d.unlock
	if f == nil {
		return nil
	}
	d.unlock = nil
	return f()
}

// acquiredDuring has an explicit owner with n holds of l unlock once, and acquire once more before
// that unlock returns err.
func acquiredDuring(t *testing.T, options record.Options, n int, err error) (r *record.Recorder, unlock func()) {
	r = record.New(options)
	inner := new(during)
	l, owner := r.Wrap("l", inner), as()
	for range n {
		require.NoError(t, l.LockContext(owner))
	}
	time.Sleep(time.Second)
	inner.unlock = func() error {
		time.Sleep(time.Second)
		require.NoError(t, l.LockContext(owner))
		return err
	}
	require.ErrorIs(t, l.UnlockContext(owner), err)
	return r, func() { require.NoError(t, l.UnlockContext(owner)) }
}

func TestARefusedUnlockKeepsWhatItsOwnerAcquiresMeanwhile(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			r, unlock := acquiredDuring(t, record.Options{Held: heldProfile}, n, locks.ErrNotHeld)
			require.Equal(t, n+1, r.Holds()[0].Holds)
			require.Equal(t, r.Start(), r.Holds()[0].Since, "it is the old hold")
			require.Equal(t, 1, heldProfile.Count())
			for range n {
				unlock()
				require.EqualValues(t, 1, r.Stats()[0].Held)
			}
			unlock()
			require.Zero(t, r.Stats()[0].Held)
			require.Zero(t, heldProfile.Count())
		})
	}
}

func TestALostUnlockEndsNoHoldAcquiredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, unlock := acquiredDuring(t, record.Options{Held: heldProfile}, 1, locks.ErrLost)
		require.Len(t, r.Holds(), 1)
		require.Equal(t, 1, r.Holds()[0].Holds)
		require.Equal(t, r.Start().Add(2*time.Second), r.Holds()[0].Since)
		require.Equal(t, 1, heldProfile.Count())
		unlock()
		require.Zero(t, r.Stats()[0].Held)
		require.Zero(t, heldProfile.Count())
	})
}

func TestALostUnlockEndsAllHoldsOfItsOwner(t *testing.T) {
	r := record.New(record.Options{})
	inner := new(during)
	l, owner, other := r.Wrap("l", inner), as(), as()
	for _, ctx := range []context.Context{owner, owner, owner, other} {
		require.NoError(t, l.LockContext(ctx))
	}
	inner.unlock = func() error { return locks.ErrLost }
	require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	require.EqualValues(t, 1, r.Stats()[0].Held, "the other owner's")
	require.EqualValues(t, 1, r.Stats()[0].Lost)
	require.NoError(t, l.UnlockContext(other))
	require.Zero(t, r.Stats()[0].Held)
}

// readers is a read-write lock of which only the read side is used.
type readers struct{ read locks.TryLocker }

func (r readers) ReadLocker() locks.TryLocker  { return r.read }
func (r readers) WriteLocker() locks.TryLocker { return r.read }

// A downgrade turns a write hold into a read hold past the recorder.
func TestAReleaseAfterADowngradeHidesNoReader(t *testing.T) {
	owner, downgraded := as(), as()
	hook, stopped, goOn := stop(owner)
	r := record.New(record.Options{})
	l := r.WrapReadWrite("l", readers{&paused{TryLocker: new(open), onLock: hook}}).ReadLocker()
	acquired := make(chan error)
	go func() { acquired <- l.LockContext(owner) }()
	<-stopped
	require.NoError(t, l.UnlockContext(downgraded))
	goOn()
	require.NoError(t, <-acquired)
	require.EqualValues(t, 1, r.Stats()[0].Held)
	require.NoError(t, l.UnlockContext(owner))
	require.Zero(t, r.Stats()[0].Held)
}

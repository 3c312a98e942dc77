package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

const remedy = " of this process; a hold belongs to the goroutine that acquired it, or to an owner (locks.WithOwner)"

func TestAnUnlockElsewhereNamesTheHolderAndTheRemedy(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, ctx := open(t, s.connect()).Mutex("it"), context.Background()
		require.NoError(t, l.LockContext(ctx))
		holder, result := locks.CurrentOwner(ctx), make(chan error)
		var caller locks.Owner
		go func() {
			caller = locks.CurrentOwner(ctx)
			result <- l.UnlockContext(ctx)
		}()
		err := <-result
		require.ErrorIs(t, err, locks.ErrNotHeld)
		const text = `lock not held by the caller, %v: the lock is held by %v` + remedy
		require.EqualError(t, err, `lease: unlock "it": `+fmt.Sprintf(text, caller, holder))
		other := locks.NewOwner()
		_, err = l.Hold(as(other))
		require.EqualError(t, err, `lease: hold "it": `+fmt.Sprintf(text, other, holder))
		require.NoError(t, l.UnlockContext(ctx))
	})
}

func TestAnUnlockBesideAHoldElsewhereDoesNotSayFree(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		rival, l := open(t, s.connect()).Mutex("it"), open(t, s.connect()).Mutex("it")
		hold(t, rival, as(1))
		const text = `lease: unlock "it": lock not held by the caller: the lock has no holder in this client; another client may hold it`
		require.EqualError(t, l.UnlockContext(as(2)), text)
		require.NoError(t, rival.UnlockContext(as(1)))
	})
}

func TestAnUnlockOfALockWithoutAHolderHereSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex("it")
		const text = `lease: unlock "it": lock not held by the caller: the lock has no holder in this client; another client may hold it`
		require.EqualError(t, l.UnlockContext(as(1)), text)
		h := hold(t, l, as(1))
		require.NoError(t, l.UnlockContext(as(1)))
		require.EqualError(t, l.UnlockContext(as(1)), text)
		require.EqualError(t, h.Err(), "lock not held by the caller: the hold is released already")
		err := h.Extend(as(1), time.Second)
		require.EqualError(t, err, `lease: extend "it": lease lost: the hold is released already`)
		require.ErrorIs(t, err, locks.ErrLost)
	})
}

func TestAnUnlockBesideALostHoldSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, a, b := open(t, s.connect()).Mutex("it", lease.WithFixedTTL(time.Second)), locks.NewOwner(), locks.NewOwner()
		h := hold(t, l, as(a))
		time.Sleep(2 * time.Second)
		require.ErrorContains(t, l.UnlockContext(as(b)), fmt.Sprintf(": the lock is lost, but not unlocked, by %v%s", a, remedy))
		require.EqualError(t, h.Extend(as(a), time.Second), `lease: extend "it": lease lost`)
		require.ErrorIs(t, l.UnlockContext(as(a)), locks.ErrLost)
	})
}

func TestALostHoldHidesNoOtherHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		read, write := c.Mutex("reads", lease.WithShared(), lease.WithFixedTTL(time.Second)), c.Mutex("writes")
		lease.NewRWMutex(read, write)
		a, b, other := locks.NewOwner(), locks.NewOwner(), locks.NewOwner()
		hold(t, read, as(a))
		time.Sleep(2 * time.Second)
		for _, half := range []*lease.Mutex{read, write} {
			require.ErrorContains(t, half.UnlockContext(as(other)), fmt.Sprintf(": the lock is lost, but not unlocked, by %v%s", a, remedy))
		}
		hold(t, read, as(b))
		for _, half := range []*lease.Mutex{read, write} {
			require.ErrorContains(t, half.UnlockContext(as(other)), fmt.Sprintf(" by %v%s", b, remedy))
		}
		require.NoError(t, read.UnlockContext(as(b)))
		require.ErrorIs(t, read.UnlockContext(as(a)), locks.ErrLost)
	})
}

func TestAHalfKnowsTheHoldersOfTheOtherHalf(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		read, write := c.Mutex("reads", lease.WithShared()), c.Mutex("writes")
		lease.NewRWMutex(read, write)
		a, b := locks.NewOwner(), locks.NewOwner()
		require.NoError(t, read.LockContext(as(a)))
		require.ErrorContains(t, write.UnlockContext(as(a)), fmt.Sprintf(": %v holds the lock for reading only", a))
		require.ErrorContains(t, write.UnlockContext(as(b)), fmt.Sprintf("the lock is held for reading by %v%s", a, remedy))
		require.ErrorContains(t, read.UnlockContext(as(b)), fmt.Sprintf("the lock is held for reading by %v%s", a, remedy))
		require.NoError(t, read.UnlockContext(as(a)))
		require.NoError(t, write.LockContext(as(a)))
		require.ErrorContains(t, read.UnlockContext(as(a)), fmt.Sprintf(": %v holds the lock for writing only", a))
		require.ErrorContains(t, read.UnlockContext(as(b)), fmt.Sprintf("the lock is held for writing by %v%s", a, remedy))
		require.ErrorContains(t, write.UnlockContext(as(b)), fmt.Sprintf("the lock is held for writing by %v%s", a, remedy))
		require.NoError(t, write.UnlockContext(as(a)))
	})
}

func TestASecondReleaseOfPermitsSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		p, err := open(t, s.connect()).Semaphore("it", 1).AcquireContext(as(1), 1)
		require.NoError(t, err)
		require.NoError(t, p.ReleaseContext(as(1)))
		err = p.ReleaseContext(as(1))
		require.EqualError(t, err, `lease: release "it": lock not held by the caller: the permits are released already`)
		require.ErrorIs(t, err, locks.ErrNotHeld)
	})
}

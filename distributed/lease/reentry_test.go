package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestALockWithoutReentryRefusesItsOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		l := open(t, s.connect()).Mutex("it", lease.WithoutReentry())
		hold(t, l, a)
		err := l.LockContext(a)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		require.EqualError(t, err, `lease: lock "it": held by the caller: deadlock`)
		ok, err := l.TryLockContext(a)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, l.UnlockContext(a))
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld, "one unlock is enough")
		hold(t, l, b)
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestALostHoldWithoutReentryIsToldToItsOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a := as(locks.NewOwner())
		l := open(t, s.connect()).Mutex("it", lease.WithoutReentry())
		h := hold(t, l, a)
		s.evict("it")
		<-h.Lost()
		require.ErrorIs(t, l.LockContext(a), locks.ErrLost)
		_, err := l.TryLockContext(a)
		require.ErrorIs(t, err, locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		hold(t, l, a)
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestARefusedLockHasNoKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		require.Empty(t, c.Mutex("it", driver.WithRefusal(locks.ErrForeign)).LockKey())
		require.NotEmpty(t, c.Mutex("it").LockKey())
	})
}

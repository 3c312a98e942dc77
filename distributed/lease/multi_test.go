package lease_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestMultiOrdersLocksOfTwoClientsByName(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for range 20 {
			a, b := open(t, s.connect()), open(t, s.connect())
			var keys []string
			for _, l := range []*lease.Mutex{a.Mutex("1"), b.Mutex("2"), a.Mutex("3"), b.Mutex("30")} {
				keys = append(keys, l.LockKey())
			}
			require.True(t, slices.IsSorted(keys), "%q", keys)
		}
	})
}

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a := open(t, s.connect(), driver.WithPlace("server 1", ""))
		same := open(t, s.connect(), driver.WithPlace("server 1", ""))
		other := open(t, s.connect(), driver.WithPlace("server 2", ""))
		require.Equal(t, "it\x00server 1", a.Mutex("it").LockKey())
		require.Equal(t, a.Mutex("it").LockKey(), same.Mutex("it").LockKey())
		require.Equal(t, "it\x00server 2", other.Mutex("it").LockKey())
		for _, c := range []*lease.Client{a, same, other} {
			require.NotContains(t, c.Mutex("it").LockKey(), c.ID())
		}
	})
}

// One key of the store is one text, whatever part of it is the prefix.
func TestALockKeyBeginsWithThePrefixOfItsStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		whole, parted := open(t, s.connect()), open(t, s.connect(), driver.WithPlace("", "z/"))
		require.Equal(t, whole.Mutex("z/a").LockKey(), parted.Mutex("a").LockKey())
	})
}

// same reports whether a and b are the same lock.
func same(t *testing.T, ctx context.Context, a, b *lease.Mutex) bool {
	t.Helper()
	is, err := a.SameLock(ctx, b)
	require.NoError(t, err)
	return is
}

func TestOnlyLocksOfOneClientAreTheSame(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := open(t, s.connect()), open(t, s.connect())
		ctx := t.Context()
		require.True(t, same(t, ctx, a.Mutex("it"), a.Mutex("it")))
		require.False(t, same(t, ctx, a.Mutex("it"), a.Mutex("other")))
		require.False(t, same(t, ctx, a.Mutex("it"), b.Mutex("it")))
		require.False(t, same(t, ctx, a.Mutex("it"), a.Mutex("it", lease.WithShared())))
		require.True(t, same(t, ctx, a.Semaphore("it", 3).Locker(1), a.Semaphore("it", 3).Locker(1)))
		require.False(t, same(t, ctx, a.Semaphore("it", 3).Locker(1), a.Semaphore("it", 3).Locker(2)))
	})
}

func TestAStoreTellsThatAHeldLockIsTheSame(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := open(t, &inspected{client: s.connect()}), open(t, &inspected{client: s.connect()})
		other := open(t, &inspected{client: newServer().connect()})
		hold(t, a.Mutex("it"), t.Context())
		require.True(t, same(t, t.Context(), b.Mutex("it"), a.Mutex("it")))
		require.False(t, same(t, t.Context(), other.Mutex("it"), a.Mutex("it")))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, same(t, ended, b.Mutex("it"), a.Mutex("it")), "it does not ask")
	})
}

func TestMultiOfTwoClientsOfOneStoreIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := open(t, &inspected{client: s.connect()}), open(t, &inspected{client: s.connect()})
		m := locks.Multi(a.Mutex("it"), b.Mutex("it"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := m.LockContext(ctx)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		require.Equal(t, 1, strings.Count(err.Error(), "deadlock"))
		hold(t, a.Mutex("it"), t.Context()) // it is free
	})
}

package named_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/named"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyLockersOfOneNameExcludeEachOther(t *testing.T) {
	p := new(named.Provider)
	other := locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, p.Locker("a").LockContext(t.Context()))
	ok, err := p.Locker("a").TryLockContext(other)
	require.NoError(t, err)
	require.False(t, ok)
	ok, err = p.Locker("b").TryLockContext(other)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 2, p.Len())
	require.NoError(t, p.Locker("b").UnlockContext(other))
	require.NoError(t, p.Locker("a").UnlockContext(t.Context()))
	require.Zero(t, p.Len())
}

func TestAProviderPassesItsPolicyOn(t *testing.T) {
	require.False(t, new(named.Provider).Locker("a").(keyed.Mutex[string]).IsFair())
	require.True(t, named.New(locks.FIFO).Locker("a").(keyed.Mutex[string]).IsFair())
}

func TestTheZeroProviderIsReadyForUse(t *testing.T) {
	var p named.Provider
	require.Zero(t, p.Len())
	require.NoError(t, p.Locker("a").LockContext(t.Context()))
	require.Equal(t, 1, p.Len())
	ok, err := p.Locker("a").TryLockContext(locks.WithOwner(t.Context(), locks.NewOwner()))
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, p.Locker("a").UnlockContext(t.Context()))
	require.False(t, p.Locker("a").(keyed.Mutex[string]).IsFair())
}

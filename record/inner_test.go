package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/fakelock"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

func TestInnerFindsALockInSeveralWrappers(t *testing.T) {
	mu := new(reentrant.Mutex)
	in, ok := record.Inner[*reentrant.Mutex](watched(watched(mu)))
	require.True(t, ok)
	require.Same(t, mu, in)
}

func TestInnerOfAnUnwrappedLockIsItself(t *testing.T) {
	mu := new(reentrant.Mutex)
	in, ok := record.Inner[*reentrant.Mutex](mu)
	require.True(t, ok)
	require.Same(t, mu, in)
}

func TestInnerFindsMethodsThatAWrapperLacks(t *testing.T) {
	l := watched(new(reentrant.Mutex))
	require.NoError(t, l.LockContext(bg))
	in, ok := record.Inner[interface{ HoldCount() int }](l)
	require.True(t, ok)
	require.Equal(t, 1, in.HoldCount())
	require.NoError(t, l.UnlockContext(bg))
}

func TestInnerTakesTheOutermostThatFits(t *testing.T) {
	l := watched(fakelock.NewLeased(""))
	in, ok := record.Inner[locks.Leased](l)
	require.True(t, ok)
	require.Same(t, l, in)
}

func TestInnerFindsNoLockOfAnotherType(t *testing.T) {
	in, ok := record.Inner[*fair.Mutex](watched(new(reentrant.Mutex)))
	require.False(t, ok)
	require.Nil(t, in)
	_, ok = record.Inner[*fair.Mutex](nil)
	require.False(t, ok)
}

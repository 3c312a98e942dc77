package lease_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestAGroupHasOneClientForEachKind(t *testing.T) {
	var g driver.Group[string, *lease.Client]
	s := newServer()
	opened := 0
	open := func() (*lease.Client, error) {
		opened++
		return lease.New(s.connect())
	}
	a, err := g.Client("a", open)
	require.NoError(t, err)
	again, err := g.Client("a", open)
	require.NoError(t, err)
	require.Same(t, a, again)
	b, err := g.Client("b", open)
	require.NoError(t, err)
	require.NotSame(t, a, b)
	require.Equal(t, 2, opened)
	failed := errors.New("failed")
	_, err = g.Client("c", func() (*lease.Client, error) { return nil, failed })
	require.ErrorIs(t, err, failed)

	o := as(locks.NewOwner())
	h := hold(t, a.Mutex("it"), o)
	first, err := g.Close(t.Context())
	require.True(t, first)
	require.NoError(t, err)
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.Empty(t, s.holder("it"))
	first, err = g.Close(t.Context())
	require.False(t, first)
	require.NoError(t, err)
	_, err = g.Client("d", open)
	require.ErrorIs(t, err, locks.ErrClosed)
	again, err = g.Client("a", open)
	require.NoError(t, err)
	require.Same(t, a, again, "whose locks return ErrClosed")
}

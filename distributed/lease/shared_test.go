package lease_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// openToAll is a store that refuses nobody.
type openToAll struct{ *client }

func (o openToAll) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	req.Name += req.Acquisition
	return o.client.Acquire(ctx, req)
}

func (o openToAll) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	id.Name += id.Acquisition
	return o.client.Release(ctx, id)
}

func TestOwnersOfASharedLockHoldItTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, err := lease.New(openToAll{s.connect()}, lease.WithTTL(term))
		require.NoError(t, err)
		defer c.Close(context.Background())
		l, a, b := c.Mutex("it", lease.WithShared()), as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, l, a)
		hold(t, l, b)
		require.Equal(t, 2, s.count("acquire"))
		hold(t, l, a)
		require.Equal(t, 2, s.count("acquire"), "re-entry is counted here")
		require.ErrorIs(t, l.UnlockContext(as(locks.NewOwner())), locks.ErrNotHeld)
		require.NoError(t, l.UnlockContext(a))
		require.Zero(t, s.count("release"))
		require.NoError(t, l.UnlockContext(a))
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		_, err = l.Hold(b)
		require.NoError(t, err)
		require.NoError(t, l.UnlockContext(b))
		require.Equal(t, 2, s.count("release"))
	})
}

package lease_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// late is a client whose first release is under way for long after it was given up.
type late struct {
	*client
	deliver *func()
}

func (l late) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	if *l.deliver == nil {
		*l.deliver = func() { l.client.Release(context.Background(), id) }
		return driver.Released{}, errNetwork
	}
	return l.client.Release(ctx, id)
}

func TestALateReleaseFreesNoLaterHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var deliver func()
		c, err := lease.New(late{s.connect(), &deliver}, lease.WithTTL(term))
		require.NoError(t, err)
		defer c.Close(context.Background())
		l, a := c.Mutex("it"), as(locks.NewOwner())
		hold(t, l, a)
		require.NoError(t, l.UnlockContext(a), "the second request has got there")
		hold(t, l, a)
		deliver()
		require.NotEmpty(t, s.holder("it"))
		require.NoError(t, l.UnlockContext(a))
	})
}

package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// giving is a store that gives every lock.
type giving struct{ driver.Store }

func (giving) Acquire(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{Held: true}, nil
}

func (giving) Release(context.Context, driver.HoldID) (driver.Released, error) {
	return driver.Released{Held: true}, nil
}

// The lock is handed off, and lost before the next owner has looked at it.
func TestALockLostAfterItsHandOffIsAskedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(giving{})
		require.NoError(t, err)
		defer c.Close(context.Background())
		l, o := c.Mutex("it"), locks.WithOwner(context.Background(), locks.NewOwner())
		q, err := c.queues.use("it", nil)
		require.NoError(t, err)
		g := &grant{s: &c.schedule, id: driver.HoldID{Name: "it"}, ttl: time.Minute, until: c.now().Add(time.Minute), index: -1}
		q.grant = g
		g.lose(nil)
		require.NoError(t, l.LockContext(o))
		h, err := l.Hold(o)
		require.NoError(t, err)
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(o))
		q.drop()
	})
}

package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// older is a store whose holds count from the beginning of a session that is older than they are.
type older struct {
	*client
	by time.Duration
}

func (o older) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	r, err := o.client.Acquire(ctx, req)
	r.Since = time.Now().Add(-o.by)
	return r, err
}

func TestAHoldCountsFromTheStoresTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		conn.set(func(c *client) { c.delay["renew"] = time.Second }) // the hold is renewed at once
		c, err := lease.New(older{conn, term / 2}, lease.WithTTL(term), lease.WithMargin(0))
		require.NoError(t, err)
		defer c.Close(context.Background())
		a := as(locks.NewOwner())

		h := hold(t, c.Mutex("it"), a)
		deadline, _ := h.Deadline()
		require.Equal(t, term/2, time.Until(deadline))
		conn.set(func(c *client) { c.delay["renew"] = 0 })
		time.Sleep(term * 3 / 4)
		require.NoError(t, h.Err(), "it is renewed in time")
		require.NoError(t, c.Mutex("it").UnlockContext(a))

		h = hold(t, c.Mutex("it", lease.WithFixedTTL(term)), a)
		deadline, _ = h.Deadline()
		require.Equal(t, term, time.Until(deadline), "one that is not renewed later has its whole time")
		require.NoError(t, c.Mutex("it").UnlockContext(a))

		c, err = lease.New(older{s.connect(), -term}, lease.WithTTL(term), lease.WithMargin(0))
		require.NoError(t, err)
		defer c.Close(context.Background())
		deadline, _ = hold(t, c.Mutex("it"), a).Deadline()
		require.Equal(t, term, time.Until(deadline), "never from later than the request")
		require.NoError(t, c.Mutex("it").UnlockContext(a))
	})
}

func TestATooShortFixedHoldIsNotGranted(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := vanishing{older{s.connect(), term / 2}}
		c, err := lease.New(store, lease.WithTTL(term))
		require.NoError(t, err)
		defer c.Close(context.Background())
		a := as(locks.NewOwner())
		ok, err := c.Mutex("it", lease.WithFixedTTL(term)).TryLockContext(a)
		require.False(t, ok)
		require.Error(t, err)
	})
}

// vanishing is a store where a hold has always ended when it is to be renewed.
type vanishing struct{ older }

func (v vanishing) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	return make([]bool, len(holds)), nil
}

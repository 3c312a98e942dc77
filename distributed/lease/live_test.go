package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/leases"
)

// listed returns the only lease called name.
func listed(t *testing.T, name string) leases.Lease {
	t.Helper()
	var found []leases.Lease
	for _, l := range leases.All() {
		if l.Name == name {
			found = append(found, l)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

func TestAHoldIsListedWithItsLastRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect(), lease.WithTTL(30*time.Second), driver.WithErrorPrefix("store"))
		began := time.Now()
		l := c.Mutex("orders")
		h := hold(t, l, context.Background())
		got := listed(t, "orders")
		require.NotZero(t, got.Queue)
		require.WithinDuration(t, began, got.Since, time.Second)
		require.InDelta(t, 29*time.Second, got.Left, float64(2*time.Second))
		got.Queue, got.Since, got.Left = 0, time.Time{}, 0
		require.Equal(t, leases.Lease{
			Client: got.Client, Store: "store", Name: "orders", Owner: int64(locks.CurrentOwner(context.Background())),
			Held: true, TTL: 30 * time.Second, Token: h.Token(),
		}, got)

		time.Sleep(25 * time.Second)
		synctest.Wait()
		got = listed(t, "orders")
		require.WithinDuration(t, began.Add(20*time.Second), got.Renewed, 2*time.Second)
		require.Positive(t, got.Left)
		require.NoError(t, l.UnlockContext(context.Background()))
		require.Empty(t, leases.All())
	})
}

func TestUnansweredRenewalsAndLossesAreListed(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := s.connect()
		c := open(t, store, lease.WithTTL(30*time.Second))
		l := c.Mutex("orders")
		h := hold(t, l, context.Background())
		store.set(func(c *client) { c.down = true })
		time.Sleep(25 * time.Second)
		synctest.Wait()
		got := listed(t, "orders")
		require.True(t, got.Held)
		require.Positive(t, got.Unanswered)
		require.Zero(t, got.Renewed)
		<-h.Lost()
		got = listed(t, "orders")
		require.False(t, got.Held)
		require.True(t, got.Lost)
		require.Zero(t, got.Left)
		require.NotEmpty(t, got.Cause)
		store.set(func(c *client) { c.down = false })
		require.ErrorIs(t, l.UnlockContext(context.Background()), locks.ErrLost)
	})
}

func TestAWaiterInTheStoreIsListed(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		other := open(t, s.connect()).Mutex("orders")
		hold(t, other, context.Background())
		c := open(t, s.connect(), driver.WithErrorPrefix("waiting"))
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		began, done := time.Now(), make(chan error)
		go func() { done <- c.Mutex("orders").LockContext(ctx) }()
		synctest.Wait()
		var asks []leases.Lease
		for _, l := range leases.All() {
			if l.Store == "waiting" {
				asks = append(asks, l)
			}
		}
		require.Len(t, asks, 1)
		require.True(t, asks[0].Asks)
		require.False(t, asks[0].Held)
		require.Equal(t, int64(locks.CurrentOwner(ctx)), asks[0].Owner)
		require.WithinDuration(t, began, asks[0].Asked, time.Second)
		cancel()
		require.Error(t, <-done)
		require.NoError(t, other.UnlockContext(context.Background()))
	})
}

func TestAClosedClientIsNotListed(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		hold(t, c.Mutex("orders"), context.Background())
		require.Len(t, leases.All(), 1)
		require.NoError(t, c.Close(context.Background()))
		require.Empty(t, leases.All())
	})
}

package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// mighty is a client that frees locks without their holders.
type mighty struct{ *client }

var _ driver.Breaker = mighty{}

func (m mighty) Break(ctx context.Context, name string) (forced bool, err error) {
	err = m.call(ctx, "force", func() {
		if forced = m.s.live(name) != nil; forced {
			delete(m.s.locks, name)
			m.s.notify(name)
		}
	})
	return forced, err
}

func TestForceUnlockTellsLocalHoldersFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, err := lease.New(mighty{s.connect()}, lease.WithTTL(term))
		require.NoError(t, err)
		defer c.Close(t.Context())
		l, elsewhere := c.Mutex("it"), open(t, s.connect()).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())

		ok, err := l.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.False(t, ok, "nobody held it")

		h := hold(t, l, a)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, elsewhere.LockContext(b)) })
		synctest.Wait()
		ok, err = l.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		wg.Wait()
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)

		h, err = elsewhere.Hold(b)
		require.NoError(t, err)
		ok, err = l.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		h2 := hold(t, l, a)
		<-h.Lost()
		require.ErrorIs(t, elsewhere.UnlockContext(b), locks.ErrLost)
		require.NoError(t, h2.Err())
		require.NotEmpty(t, s.holder("it"), "the loser leaves its successor alone")
		require.NoError(t, l.UnlockContext(a))

		_, err = elsewhere.ForceUnlock(t.Context())
		require.ErrorIs(t, err, errors.ErrUnsupported)
	})
}

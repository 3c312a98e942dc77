package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
)

func TestTheLocalQueuesErrorNamesTheLockOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, a := open(t, s.connect()).Mutex("it"), as(1)
		require.NoError(t, l.LockContext(a))
		ctx, cancel := context.WithCancelCause(as(2))
		result := make(chan error)
		go func() { result <- l.LockContext(ctx) }()
		synctest.Wait()
		cancel(errors.New("no more"))
		err := <-result
		require.EqualError(t, err, `lease: lock "it": context canceled: no more`)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestALocalDeadlockIsNoClosedClient(t *testing.T) {
	defer deadlock.Refuse(deadlock.Refuse(true))
	bubble(t, func(t *testing.T, s *server) {
		c, ctx := open(t, s.connect()), context.Background()
		one, two := c.Mutex("one"), c.Mutex("two")
		require.NoError(t, one.LockContext(ctx))
		waits := make(chan error)
		go func() {
			if err := two.LockContext(ctx); err != nil {
				waits <- err
				return
			}
			err := one.LockContext(ctx)
			two.UnlockContext(ctx)
			one.UnlockContext(ctx)
			waits <- err
		}()
		synctest.Wait()
		err := two.LockContext(ctx)
		require.EqualError(t, err, `lease: lock "two": deadlock`)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		require.NoError(t, one.UnlockContext(ctx))
		require.NoError(t, <-waits)
	})
}

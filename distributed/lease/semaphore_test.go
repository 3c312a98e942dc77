package lease_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestThePoolOfTheExamplesIsProved(t *testing.T) {
	leasetest.TestInVirtualTime(t, func(testing.TB) leasetest.Config {
		server := newPool()
		return leasetest.Config{
			Store:     func(testing.TB, *leasetest.Link) driver.Store { return server },
			Semaphore: leasetest.Semaphores,
		}
	})
}

func TestThePoolOfTheExamplesIsSimulated(t *testing.T) {
	leasetest.Simulate(t, leasetest.World{For: time.Minute, Open: func(testing.TB) leasetest.Config {
		server := newPool()
		return leasetest.Config{
			Store:     func(testing.TB, *leasetest.Link) driver.Store { return server },
			Semaphore: leasetest.Semaphores,
		}
	}})
}

// virtual runs f with a semaphore of three permits, in virtual time.
func virtual(t *testing.T, f func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := opened(newPool(), lease.WithTTL(9*time.Second))
		defer c.Close(context.Background())
		f(t, ctx, c, c.Semaphore("pool", 3))
	})
}

func TestPermitsAreHeldUntilReleased(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		two, err := s.AcquireContext(ctx, 2)
		require.NoError(t, err)
		require.EqualValues(t, 2, two.Count())
		none, ok, err := s.TryAcquireContext(ctx, 2)
		require.NoError(t, err)
		require.False(t, ok)
		require.Nil(t, none)
		time.Sleep(time.Minute) // it is renewed
		require.NoError(t, two.Err())
		require.NoError(t, two.ReleaseContext(ctx))
		require.ErrorIs(t, two.ReleaseContext(ctx), locks.ErrNotHeld)
		require.ErrorIs(t, two.Err(), locks.ErrNotHeld)
		three, _, err := s.TryAcquireContext(ctx, 3)
		require.NoError(t, err)
		require.Greater(t, three.Token(), two.Token())
		require.NoError(t, three.ReleaseContext(nil)) //nolint:staticcheck // allowed
	})
}

func TestWaitersForPermitsKeepTheirOrderLocally(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		held, err := s.AcquireContext(ctx, 1)
		require.NoError(t, err)
		order := make(chan int64, 2)
		for _, n := range []int64{3, 1} {
			go func() {
				p, err := s.AcquireContext(ctx, n)
				if err == nil {
					order <- n
					_ = p.ReleaseContext(ctx)
				}
			}()
			synctest.Wait()
		}
		require.Equal(t, 1, s.QueueLength())
		require.Empty(t, order, "one permit passes no earlier waiter")
		require.NoError(t, held.ReleaseContext(ctx))
		require.EqualValues(t, 3, <-order)
		require.EqualValues(t, 1, <-order)
	})
}

func TestAWaitForPermitsEndsWithItsContext(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		held, err := s.AcquireContext(ctx, 3)
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		none, err := s.AcquireContext(short, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Nil(t, none)
		synctest.Wait() // a request that was under way then has been undone
		require.NoError(t, held.ReleaseContext(ctx))
		_, ok, err := s.TryAcquireContext(ctx, 3)
		require.NoError(t, err)
		require.True(t, ok, "the wait left nothing")
	})
}

func TestCloseEndsWaitsAndLosesPermits(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		held, err := s.AcquireContext(ctx, 3)
		require.NoError(t, err)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := s.AcquireContext(ctx, 1)
				errs <- err
			}()
		}
		synctest.Wait()
		require.NoError(t, c.Close(ctx))
		require.ErrorIs(t, <-errs, locks.ErrClosed)
		require.ErrorIs(t, <-errs, locks.ErrClosed)
		require.ErrorIs(t, held.Err(), locks.ErrLost)
		<-held.Lost()
	})
}

func TestWrongNumbersOfPermitsAreErrors(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		for n, want := range map[int64]error{4: locks.ErrTooLarge, 0: fs.ErrInvalid, -1: fs.ErrInvalid} {
			_, err := s.AcquireContext(ctx, n)
			require.ErrorIs(t, err, want)
			_, _, err = s.TryAcquireContext(ctx, n)
			require.ErrorIs(t, err, want)
			require.ErrorIs(t, s.Locker(n).LockContext(ctx), want)
		}
		_, err := c.Semaphore("pool", 0).AcquireContext(ctx, 1)
		require.ErrorIs(t, err, locks.ErrTooLarge)
		_, err = s.AcquireContext(nil, 1) //nolint:staticcheck // an error
		require.ErrorIs(t, err, locks.ErrNilContext)
	})
}

func TestALockerOfPermitsBelongsToItsOwner(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		one := s.Locker(1)
		require.NoError(t, one.LockContext(ctx))
		require.NoError(t, one.LockContext(ctx), "it is reentrant")
		two, ok, err := s.TryAcquireContext(ctx, 2)
		require.NoError(t, err)
		require.True(t, ok)
		other := locks.WithOwner(ctx, locks.NewOwner())
		ok, err = one.TryLockContext(other)
		require.NoError(t, err)
		require.False(t, ok)
		require.ErrorIs(t, one.UnlockContext(other), locks.ErrNotHeld)
		require.NoError(t, one.UnlockContext(ctx))
		require.NoError(t, one.UnlockContext(ctx))
		require.NoError(t, two.ReleaseContext(ctx))
	})
}

func TestAReleaseHereWakesTheWaiterOfAPolledStore(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		held, err := s.AcquireContext(ctx, 3)
		require.NoError(t, err)
		waited := make(chan time.Time, 1)
		go func() {
			p, err := s.AcquireContext(ctx, 1)
			if err == nil {
				waited <- time.Now()
				_ = p.ReleaseContext(ctx)
			}
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		released := time.Now()
		require.NoError(t, held.ReleaseContext(ctx))
		require.Zero(t, (<-waited).Sub(released))
	})
}

func TestLockersOfOtherNumbersAreOtherLocks(t *testing.T) {
	virtual(t, func(t *testing.T, ctx context.Context, c *lease.Client, s *lease.Semaphore) {
		one, two := s.Locker(1), s.Locker(2)
		require.NoError(t, one.LockContext(ctx))
		require.ErrorIs(t, two.UnlockContext(ctx), locks.ErrNotHeld)
		both := locks.Multi(two, s.Locker(3))
		ok, err := both.TryLockContext(ctx)
		require.NoError(t, err)
		require.False(t, ok, "five of three")
		require.NoError(t, two.LockContext(ctx))
		_, ok, err = s.TryAcquireContext(ctx, 1)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, one.UnlockContext(ctx))
		require.NoError(t, two.UnlockContext(ctx))
	})
}

func TestAWaiterForItsTurnOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := leasetest.NewRequests(newPool())
		c := opened(store, lease.WithTTL(time.Minute))
		defer c.Close(context.Background())
		s := c.Semaphore("pool", 1)
		held, err := s.AcquireContext(ctx, 1)
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		done := make(chan error, 2)
		for _, ctx := range []context.Context{short, ctx} {
			go func() {
				p, err := s.AcquireContext(ctx, 1)
				if err == nil {
					_ = p.ReleaseContext(ctx)
				}
				done <- err
			}()
			synctest.Wait()
		}
		store.Always(leasetest.Acquire, leasetest.LostRequest)
		require.ErrorIs(t, <-done, context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
		require.Empty(t, done, "the second one waits for the store")
		store.Heal()
		require.NoError(t, held.ReleaseContext(ctx))
		require.NoError(t, <-done)
	})
}

// breakable is a pool that frees what it is told.
type breakable struct{ *pool }

func (breakable) Break(context.Context, string) (bool, error) { return true, nil }

func TestPermitsAreNotFreedByForce(t *testing.T) {
	c := opened(breakable{newPool()})
	defer c.Close(t.Context())
	_, err := c.Semaphore("pool", 3).Locker(1).ForceUnlock(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

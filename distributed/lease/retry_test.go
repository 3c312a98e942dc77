package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// turnedDown returns a lock of a store that refuses every request with errs.
func turnedDown(t *testing.T, s *server, errs []error, opts ...lease.Option) (*fickle, *lease.Mutex) {
	store := &fickle{client: s.connect()}
	store.fail(errs...)
	c, err := lease.New(store, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	return store, c.Mutex("it")
}

var (
	loading     = []error{driver.ErrRefused, driver.ErrUnavailable}
	unreachable = []error{driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable}
)

func TestAPassingRefusalIsRetriedAtFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store, l := turnedDown(t, s, loading)
		got, o := make(chan error, 1), as(locks.NewOwner())
		go func() { got <- l.LockContext(o) }()
		time.Sleep(time.Minute)
		require.Empty(t, got)
		store.fail()
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestALastingRefusalIsInTheError(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		_, l := turnedDown(t, s, loading)
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Second)
		defer cancel()
		err := l.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, driver.ErrUnavailable)
		require.ErrorContains(t, err, "; the store was not available: ", "it has answered")
		ok, err := l.TryLockContext(as(locks.NewOwner()))
		require.False(t, ok)
		require.ErrorIs(t, err, driver.ErrUnavailable, "a try asks once")
	})
}

func TestAnUnreachableStoreIsRetriedOnRequestOnly(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		_, l := turnedDown(t, s, unreachable)
		began := time.Now()
		require.ErrorIs(t, l.LockContext(as(locks.NewOwner())), driver.ErrUnreachable)
		require.Zero(t, time.Since(began))

		store, l := turnedDown(t, s, unreachable, lease.WithRetry(lease.RetryUnreachable))
		got, o := make(chan error, 1), as(locks.NewOwner())
		go func() { got <- l.LockContext(o) }()
		time.Sleep(time.Minute)
		require.Empty(t, got)
		store.fail()
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestRetryNeverRetriesNoFirstRefusal(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		_, l := turnedDown(t, s, loading, lease.WithRetry(lease.RetryNever))
		began := time.Now()
		require.ErrorIs(t, l.LockContext(as(locks.NewOwner())), driver.ErrUnavailable)
		require.Zero(t, time.Since(began))
		_, err := lease.New(s.connect(), lease.WithRetry(lease.RetryUnreachable+1))
		require.Error(t, err)
	})
}

func TestAnAnswerEndsACancelledRequestsUndoing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, holder := open(t, conn).Mutex("it"), open(t, s.connect()).Mutex("it")
		hold(t, holder, as(locks.NewOwner()))
		conn.set(func(c *client) { c.delay["acquire"] = 120 * time.Millisecond })
		const n = 100
		for range n {
			ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 60*time.Millisecond)
			_, err := l.TryLockContext(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		released := s.count("release")
		require.LessOrEqual(t, released, 4*n)
		time.Sleep(time.Minute)
		require.Equal(t, released, s.count("release"), "the answers have come")
	})
}

// forbidding is a store whose releases are refused for good.
type forbidding struct{ *client }

var errForbidden = errors.New("no permission")

func (f forbidding) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	f.call(ctx, "release", func() {})
	return driver.Released{}, joined{driver.ErrRefused, errForbidden}
}

func TestARefusedReleaseIsAnsweredAtOnceAndRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, err := lease.New(forbidding{s.connect()}, lease.WithTTL(term))
		require.NoError(t, err)
		l, o := c.Mutex("it"), as(locks.NewOwner())
		hold(t, l, o)
		began := time.Now()
		require.ErrorIs(t, l.UnlockContext(o), errForbidden)
		require.Zero(t, time.Since(began))
		time.Sleep(term + time.Millisecond) // the last release comes when the hold ends
		sent := s.count("release")
		require.Greater(t, sent, 10)
		require.Less(t, sent, 30, "the pauses grow")
		time.Sleep(time.Minute)
		require.Equal(t, sent, s.count("release"), "the hold has ended")
		require.NoError(t, c.Close(t.Context()))
	})
}

// stuck is a store whose releases take as long as their context lets them.
type stuck struct{ *client }

func (stuck) Release(ctx context.Context, _ driver.HoldID) (driver.Released, error) {
	<-ctx.Done()
	return driver.Released{}, ctx.Err()
}

func TestTheReleaseTimeoutLimitsAnUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for _, timeout := range []time.Duration{100 * time.Millisecond, 3 * time.Second} {
			c, err := lease.New(stuck{s.connect()}, lease.WithReleaseTimeout(timeout))
			require.NoError(t, err)
			l, o := c.Mutex(timeout.String()), as(locks.NewOwner())
			hold(t, l, o)
			began := time.Now()
			err = l.UnlockContext(o)
			require.Error(t, err)
			assert.NotErrorIs(t, err, context.DeadlineExceeded, "no context of the caller's has ended")
			require.LessOrEqual(t, time.Since(began), timeout)
			c.Close(t.Context())
		}
	})
}

func TestALateStoreIsNotCalledUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l := open(t, conn).Mutex("it")
		conn.set(func(c *client) { c.delay["acquire"] = 2 * term })
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 7*term)
		defer cancel()
		err := l.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "; the store's answer came after the end of the lease")
		require.NotContains(t, err.Error(), "reached")
	})
}

func TestAnAnswerAfterTheLeaseIsRequestedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		conn.set(func(c *client) { c.delay["acquire"] = 2 * term })
		got := make(chan error, 1)
		go func() { got <- l.LockContext(o) }()
		time.Sleep(term)
		require.Empty(t, got)
		conn.set(func(c *client) { c.delay["acquire"] = 0 })
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(o))
		synctest.Wait()
		require.Empty(t, s.holder("it"), "what came late was given back")
	})
}

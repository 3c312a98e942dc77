package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// talkative is a store whose requests fail with the error of a context that is not the caller's.
type talkative struct {
	*inspected
	lost func(driver.HoldID, error)

	state sync.Mutex
	err   error
}

func (s *talkative) fail(err error) {
	s.state.Lock()
	defer s.state.Unlock()
	s.err = err
}

func (s *talkative) failure() error {
	s.state.Lock()
	defer s.state.Unlock()
	return s.err
}

func (s *talkative) NotifyLoss(lost func(driver.HoldID, error)) { s.lost = lost }

func (s *talkative) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if err := s.failure(); err != nil {
		return driver.Reply{}, err
	}
	return s.inspected.Acquire(ctx, req)
}

func (s *talkative) Renew(ctx context.Context, ids []driver.HoldID, d time.Duration) ([]bool, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.inspected.Renew(ctx, ids, d)
}

func (s *talkative) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	if err := s.failure(); err != nil {
		return driver.Released{}, err
	}
	return s.inspected.Release(ctx, id)
}

func (s *talkative) Inspect(context.Context, string) (driver.State, error) {
	return driver.State{}, s.failure()
}

func (s *talkative) Break(context.Context, string) (bool, error) { return false, s.failure() }

// ofAnother are errors of contexts as the clients of servers return them.
var ofAnother = []error{
	context.DeadlineExceeded,
	context.Canceled,
	fmt.Errorf("timeout: %w", context.DeadlineExceeded),
	errors.New("rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
	errors.New("rpc error: code = Canceled desc = context canceled"),
	driver.Mark(errors.New("latest error: context deadline exceeded"), driver.ErrUnavailable),
	driver.Mark(fmt.Errorf("dial: %w", context.DeadlineExceeded), unreachable...),
	driver.Mark(fmt.Errorf("auth: %w", context.Canceled), driver.ErrRefused, driver.ErrLogin),
}

// requireNone fails if err is the error of a context, or says so.
func requireNone(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "context ")
}

func TestNoErrorBlamesAContextOfTheCallerThatGoesOn(t *testing.T) {
	for _, failure := range ofAnother {
		t.Run(failure.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				var log strings.Builder
				store := &talkative{inspected: &inspected{client: s.connect()}}
				c, err := lease.New(store, lease.WithTTL(term), lease.WithRetry(lease.RetryNever),
					lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Hour)
				defer cancel()
				l, permits := c.Mutex("it"), c.Semaphore("permits", 3)
				h, lost := hold(t, l, ctx), hold(t, c.Mutex("lost"), ctx)
				hold(t, c.Mutex("left"), ctx)
				id := driver.HoldID{Name: "lost", Acquisition: s.holder("lost")}

				store.fail(failure)
				requireNone(t, h.Extend(ctx, term))
				requireNone(t, l.UnlockContext(ctx))
				requireNone(t, c.Mutex("other").LockContext(ctx))
				_, err = c.Mutex("other").TryLockContext(ctx)
				requireNone(t, err)
				_, err = permits.AcquireContext(ctx, 1)
				requireNone(t, err)
				_, _, err = permits.TryAcquireContext(ctx, 1)
				requireNone(t, err)
				_, err = l.Inspect(ctx)
				requireNone(t, err)
				_, err = l.ForceUnlock(ctx)
				requireNone(t, err)
				store.lost(id, failure)
				requireNone(t, lost.Err())
				requireNone(t, c.Mutex("lost").UnlockContext(ctx))
				requireNone(t, c.Close(ctx))
				require.Contains(t, log.String(), "lock not released yet")
				require.NotContains(t, log.String(), "context ")
			})
		})
	}
}

func TestAnEndedWaitHasNoErrorOfAnotherContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := &talkative{inspected: &inspected{client: s.connect()}}
		l := open(t, store, lease.WithRetry(lease.RetryUnreachable)).Mutex("it")
		store.fail(driver.Mark(context.DeadlineExceeded, unreachable...))
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		time.AfterFunc(time.Minute, cancel)
		err := l.LockContext(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err,
			`lease: lock "it": context canceled; the store could not be reached: no answer in time`)

		store.fail(driver.Mark(context.Canceled, unreachable...))
		ctx, cancel = context.WithTimeout(as(locks.NewOwner()), time.Minute)
		defer cancel()
		err = l.LockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

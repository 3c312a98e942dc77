package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// teller is a store that learns by itself of holds that have ended.
type teller struct {
	*client
	lost func(driver.HoldID, error)
}

var _ driver.LossNotifier = (*teller)(nil)

func (s *teller) NotifyLoss(lost func(driver.HoldID, error)) { s.lost = lost }

func TestANotifiedLossEndsTheHoldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := &teller{client: s.connect()}
		c, err := lease.New(store)
		require.NoError(t, err)
		defer c.Close(context.Background())
		l, other := c.Mutex("it"), c.Mutex("other")
		a := as(locks.NewOwner())
		h, unharmed := hold(t, l, a), hold(t, other, a)
		over := errors.New("the session is over")
		acquisition := s.holder("it")
		store.lost(driver.HoldID{Name: "it", Acquisition: acquisition}, over)
		select {
		case <-h.Lost():
		default:
			t.Fatal("not told")
		}
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, h.Err(), over)
		require.NoError(t, unharmed.Err())
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)

		require.NoError(t, l.LockContext(a), "it can be taken anew")
		store.lost(driver.HoldID{Name: "it", Acquisition: acquisition}, over)
		next, err := l.Hold(a)
		require.NoError(t, err)
		require.NoError(t, next.Err(), "what is told of an earlier hold is no word of this one")
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, other.UnlockContext(a))
	})
}

// hasty is a store that tells of the end of a hold before it answers that there is one.
type hasty struct {
	teller
	over error
}

func (s *hasty) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	r, err := s.teller.Acquire(ctx, req)
	if s.over != nil {
		s.lost(req.HoldID, s.over)
	}
	return r, err
}

func TestALossNotifiedBeforeTheAnswerCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := &hasty{teller: teller{client: s.connect()}, over: errors.New("the session is over")}
		c, err := lease.New(store)
		require.NoError(t, err)
		defer c.Close(context.Background())
		l, a := c.Mutex("it"), as(locks.NewOwner())
		h := hold(t, l, a)
		select {
		case <-h.Lost():
		default:
			t.Fatal("not told")
		}
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, h.Err(), store.over)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)

		s.evict("it")
		store.over = nil
		h = hold(t, l, a)
		require.NoError(t, h.Err(), "another hold")
		require.NoError(t, l.UnlockContext(a))
	})
}

// reluctant is a store that fails the first releases with these errors. Errors that do not match
// [driver.ErrRefused] come after the release.
type reluctant struct {
	*client
	fails []error
}

func (r *reluctant) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	if len(r.fails) == 0 {
		return r.client.Release(ctx, id)
	}
	err := r.fails[0]
	r.fails = r.fails[1:]
	if !errors.Is(err, driver.ErrRefused) {
		r.client.Release(ctx, id)
	}
	return driver.Released{}, err
}

func TestAReleaseThatWasOnlyRefusedDidNotFreeTheLock(t *testing.T) {
	unavailable := driver.Mark(errors.New("read only"), loading...)
	unreachable := driver.Mark(errors.New("connection refused"), unreachable...)
	for name, c := range map[string]struct {
		fails   []error
		evicted bool
		lost    bool
	}{
		"refused, and lost":                   {[]error{unavailable}, true, true},
		"refused twice, and lost":             {[]error{unavailable, unreachable}, true, true},
		"refused, and held":                   {[]error{unavailable}, false, false},
		"released without an answer":          {[]error{errNetwork}, false, false},
		"refused, and then without an answer": {[]error{unavailable, errNetwork}, false, false},
		"without an answer, and then refused": {[]error{errNetwork, unavailable}, false, false},
		"without an answer, and perhaps lost": {[]error{errNetwork}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				store, o := &reluctant{client: s.connect(), fails: c.fails}, as(locks.NewOwner())
				l := open(t, store).Mutex("it")
				hold(t, l, o)
				if c.evicted {
					s.evict("it")
				}
				err := l.UnlockContext(o)
				if c.lost {
					require.ErrorIs(t, err, locks.ErrLost)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

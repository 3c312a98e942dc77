package lease_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// rivalry returns by how much later h was told of its loss than a rival got the lock.
func rivalry(t *testing.T, s *server, h locks.Hold) time.Duration {
	rival, b := open(t, s.connect()).Mutex("it"), as(locks.NewOwner())
	granted := make(chan time.Time, 1)
	go func() {
		defer close(granted) // if LockContext fails, the test does not wait in vain
		if assert.NoError(t, rival.LockContext(b)) {
			at := time.Now()
			assert.NoError(t, rival.UnlockContext(b))
			granted <- at
		}
	}()
	<-h.Lost()
	told := time.Now()
	return told.Sub(<-granted)
}

func TestAnExtensionBelowOneMillisecondIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		o := as(locks.NewOwner())
		h := hold(t, open(t, s.connect()).Mutex("it"), o)
		before, _ := h.Deadline()
		for _, d := range []time.Duration{-time.Hour, -1, 0, 1, 30, time.Millisecond - 1} {
			require.Error(t, h.Extend(o, d), d)
			require.NoError(t, h.Err(), d)
		}
		after, _ := h.Deadline()
		require.Equal(t, before, after)
		require.NoError(t, h.Extend(o, time.Millisecond))
	})
}

func TestAnUnansweredExtensionMayShortenTheHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, o := s.connect(), as(locks.NewOwner())
		h := hold(t, open(t, conn).Mutex("it", lease.WithFixedTTL(time.Hour)), o)
		conn.set(func(c *client) { c.dropReply["renew"] = 1 })
		require.Error(t, h.Extend(o, time.Second))
		require.LessOrEqual(t, rivalry(t, s, h), time.Duration(0))
	})
}

func TestAnExtensionUnderWayMayShortenTheHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, o := s.connect(), as(locks.NewOwner())
		h := hold(t, open(t, conn).Mutex("it"), o)
		// It is there after 11 seconds, when a renewal has been carried out.
		conn.set(func(c *client) { c.delay["renew"] = 22 * time.Second })
		done := make(chan error, 1)
		go func() { done <- h.Extend(o, 12*time.Second) }()
		time.Sleep(time.Second)
		conn.set(func(c *client) { c.delay["renew"] = 0 })
		time.Sleep(12 * time.Second)
		conn.set(func(c *client) { c.down = true })
		require.LessOrEqual(t, rivalry(t, s, h), time.Duration(0))
		<-done
	})
}

func TestALateRenewalMayShortenALongExtension(t *testing.T) {
	for _, lost := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *server) {
			conn, o := s.connect(), as(locks.NewOwner())
			h := hold(t, open(t, conn).Mutex("it"), o)
			time.Sleep(10*time.Second - time.Millisecond)
			conn.set(func(c *client) {
				c.delay["renew"] = 4 * time.Second
				if lost {
					c.dropReply["renew"] = 1
				}
			})
			time.Sleep(2 * time.Millisecond) // the renewal is on its way
			conn.set(func(c *client) { c.delay["renew"] = 0 })
			require.NoError(t, h.Extend(o, time.Hour)) // and carried out before it
			time.Sleep(5 * time.Second)
			conn.set(func(c *client) { c.down = true })
			require.LessOrEqual(t, rivalry(t, s, h), time.Duration(0))
		})
	}
}

func TestALaterRenewalOverridesAnExtension(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, o := s.connect(), as(locks.NewOwner())
		h := hold(t, open(t, conn).Mutex("it"), o)
		time.Sleep(2 * time.Second)
		conn.set(func(c *client) { c.delay["renew"] = 10 * time.Second }) // carried out after 5, before the renewal
		done := make(chan error, 1)
		go func() { done <- h.Extend(o, time.Hour) }()
		time.Sleep(time.Second)
		conn.set(func(c *client) { c.delay["renew"] = 0 })
		require.NoError(t, <-done)
		conn.set(func(c *client) { c.down = true })
		require.LessOrEqual(t, rivalry(t, s, h), time.Duration(0))
	})
}

// straggler is a store whose first renewal fails, and is carried out later.
type straggler struct {
	*client
	after time.Duration
	once  sync.Once
}

func (s *straggler) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) (ok []bool, err error) {
	first := false
	s.once.Do(func() { first = true })
	if first {
		time.AfterFunc(s.after, func() { s.client.Renew(context.Background(), holds, d) })
		return nil, errNetwork
	}
	return s.client.Renew(ctx, holds, d)
}

func TestALateRequestMayShortenALaterExtension(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store, o := &straggler{client: s.connect(), after: 3 * time.Second}, as(locks.NewOwner())
		c, err := lease.New(store)
		require.NoError(t, err)
		defer c.Close(context.Background())
		h := hold(t, c.Mutex("it", lease.WithFixedTTL(time.Hour)), o)
		require.ErrorIs(t, h.Extend(o, 5*time.Second), errNetwork)
		time.Sleep(time.Second)
		require.NoError(t, h.Extend(o, time.Hour))
		require.LessOrEqual(t, rivalry(t, s, h), time.Duration(0))
	})
}

// repeater is a store whose first renewal is sent twice. One request is answered, and the other is
// carried out later.
type repeater struct {
	*client
	late  *client
	after time.Duration
	once  sync.Once
}

func (s *repeater) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) (ok []bool, err error) {
	ok, err = s.client.Renew(ctx, holds, d)
	s.once.Do(func() {
		time.AfterFunc(s.after, func() { s.late.Renew(context.Background(), holds, d) })
		err = driver.ErrUnanswered
	})
	return ok, err
}

func TestALateRequestBesideAnAnswerMayShortenAnExtension(t *testing.T) {
	for name, first := range map[string]func(o context.Context, h locks.Hold) error{
		"extension": func(o context.Context, h locks.Hold) error { return h.Extend(o, term) },
		"renewal": func(context.Context, locks.Hold) error {
			time.Sleep(11 * time.Second) // which it follows after 10
			return nil
		},
	} {
		bubble(t, func(t *testing.T, s *server) {
			store, o := &repeater{client: s.connect(), late: s.connect(), after: 3 * time.Second}, as(locks.NewOwner())
			c, err := lease.New(store)
			require.NoError(t, err)
			defer c.Close(context.Background())
			h := hold(t, c.Mutex("it"), o)
			require.NoError(t, first(o, h), name)
			require.NoError(t, h.Extend(o, time.Hour), name)
			store.set(func(c *client) { c.down = true })
			time.Sleep(5 * time.Second)
			require.LessOrEqual(t, rivalry(t, s, h), time.Duration(0), name)
		})
	}
}

func TestAShortExtensionKeepsARenewedHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		o := as(locks.NewOwner())
		l := open(t, s.connect()).Mutex("it")
		h := hold(t, l, o)
		require.NoError(t, h.Extend(o, 5*time.Second))
		time.Sleep(10 * term)
		require.NoError(t, h.Err())
		require.NoError(t, h.Extend(o, 10*term), "and one that is longer lasts")
		deadline, _ := h.Deadline()
		require.Greater(t, time.Until(deadline), 9*term)
		require.NoError(t, l.UnlockContext(o))
	})
}

// tally counts the renewals, and loses the first of them.
type tally struct {
	*client
	renewals atomic.Int64
}

func (c *tally) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	if c.renewals.Add(1) == 1 {
		return nil, errNetwork
	}
	return c.client.Renew(ctx, holds, d)
}

func TestALostExtensionIsNoReasonToRenewWithoutAPause(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store, o := &tally{client: s.connect()}, as(locks.NewOwner())
		store.delay["renew"] = 10 * time.Millisecond
		c, err := lease.New(store)
		require.NoError(t, err)
		defer c.Close(context.Background())
		h := hold(t, c.Mutex("it"), o)
		require.ErrorIs(t, h.Extend(o, 5*time.Second), errNetwork)
		time.Sleep(time.Minute)
		require.NoError(t, h.Err())
		require.Less(t, store.renewals.Load(), int64(100), "it may be carried out yet, so the hold is always short")
	})
}

func TestAnAnswerAfterTheLeaseGrantsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, o := s.connect(), as(locks.NewOwner())
		l := open(t, conn).Mutex("it")
		conn.set(func(c *client) { c.delay["acquire"] = 3 * term })
		ok, err := l.TryLockContext(o)
		require.False(t, ok)
		require.Error(t, err)
		conn.set(func(c *client) { c.delay["acquire"] = 0 })
		require.NoError(t, l.LockContext(o))
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestAnExtensionThatComesTooLateBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, o := s.connect(), as(locks.NewOwner())
		h := hold(t, open(t, conn).Mutex("it", lease.WithFixedTTL(30*time.Second)), o)
		conn.set(func(c *client) { c.delay["renew"] = 50 * time.Second }) // it is carried out after half of that
		require.ErrorIs(t, h.Extend(o, time.Hour), locks.ErrLost)
		require.LessOrEqual(t, -rivalry(t, s, h), 10*time.Second)
	})
}

func TestARenewalAnsweredAfterTheLossBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		h := hold(t, open(t, conn).Mutex("it"), as(locks.NewOwner()))
		conn.set(func(c *client) { c.delay["renew"] = 25 * time.Second })
		require.LessOrEqual(t, -rivalry(t, s, h), 10*time.Second)
	})
}

// dawdler is a store whose renewals are carried out at once, and answered after their contexts.
type dawdler struct{ *client }

func (s dawdler) Renew(_ context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	defer time.Sleep(40 * time.Second)
	return s.client.Renew(context.Background(), holds, d)
}

func TestAnExtensionAnsweredAfterTheLossBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, err := lease.New(dawdler{s.connect()})
		require.NoError(t, err)
		defer c.Close(context.Background())
		o := as(locks.NewOwner())
		h := hold(t, c.Mutex("it", lease.WithFixedTTL(30*time.Second)), o)
		go h.Extend(o, time.Hour)
		require.LessOrEqual(t, -rivalry(t, s, h), 20*time.Second)
	})
}

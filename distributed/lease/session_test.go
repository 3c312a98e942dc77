package lease_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// lasting is a store whose locks last until they are released, or the session ends, of which the
// server decides how long it is.
type lasting struct {
	*client
	term time.Duration

	mu   sync.Mutex
	lost []driver.HoldID
}

func (s *lasting) Term() time.Duration { return s.term }

func (s *lasting) Lost(r driver.HoldID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, r)
}

func (s *lasting) told() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lost)
}

func overSession(t *testing.T, f func(t *testing.T, store *lasting, c *lease.Client)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *server) {
		store := &lasting{client: s.connect(), term: 10 * time.Second}
		c, err := lease.New(store, lease.WithTTL(time.Hour), lease.WithMargin(time.Second))
		require.NoError(t, err)
		defer c.Close(context.Background())
		f(t, store, c)
	})
}

func TestASessionDecidesHowLongHoldsLast(t *testing.T) {
	overSession(t, func(t *testing.T, store *lasting, c *lease.Client) {
		l, a := c.Mutex("it"), as(locks.NewOwner())
		h := hold(t, l, a)
		until, _ := h.Deadline()
		require.Equal(t, 9*time.Second, time.Until(until))
		require.NoError(t, h.Extend(a, time.Hour))
		until, _ = h.Deadline()
		require.Equal(t, 9*time.Second, time.Until(until), "not longer than the session")
		time.Sleep(time.Minute)
		require.NoError(t, h.Err(), "it is renewed")
		store.term = 20 * time.Second
		other := hold(t, c.Mutex("other"), a)
		until, _ = other.Deadline()
		require.Equal(t, 19*time.Second, time.Until(until))
		fixed := hold(t, c.Mutex("fixed", lease.WithFixedTTL(time.Hour)), a)
		until, _ = fixed.Deadline()
		require.Equal(t, 19*time.Second, time.Until(until))
	})
}

func TestEachLostHoldIsToldASessionOnce(t *testing.T) {
	overSession(t, func(t *testing.T, store *lasting, c *lease.Client) {
		a := as(locks.NewOwner())
		hold(t, c.Mutex("released"), a)
		require.NoError(t, c.Mutex("released").UnlockContext(a))
		l := c.Mutex("it")
		h := hold(t, l, a)
		require.Zero(t, store.told())
		store.set(func(c *client) { c.down = true })
		<-h.Lost()
		synctest.Wait()
		require.Equal(t, 1, store.told())
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		store.set(func(c *client) { c.down = false })
		store.s.evict("it")

		h = hold(t, l, a)
		store.s.evict("it") // seen by the next renewal
		<-h.Lost()
		synctest.Wait()
		require.Equal(t, 2, store.told())
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)

		time.Sleep(time.Minute)
		require.Equal(t, 2, store.told())
		require.Equal(t, "it", store.lost[1].Name)
	})
}

func TestASessionLearnsOfAReleasesLoss(t *testing.T) {
	overSession(t, func(t *testing.T, store *lasting, c *lease.Client) {
		a := as(locks.NewOwner())
		l := c.Mutex("it")
		hold(t, l, a)
		store.set(func(c *client) { c.down = true })
		time.Sleep(9 * time.Second) // to the moment: the unlock and the scheduler race for it
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		synctest.Wait()
		require.Equal(t, 1, store.told())
	})
}

func TestASessionGetsWhatNoReleaseFreed(t *testing.T) {
	overSession(t, func(t *testing.T, store *lasting, c *lease.Client) {
		l, a := c.Mutex("it"), as(locks.NewOwner())
		hold(t, l, a)
		store.set(func(c *client) { c.down = true })
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		require.Zero(t, store.told(), "releases go on")
		time.Sleep(store.term)
		require.Equal(t, 1, store.told())
	})
}

// queueing is a store that gives no lock. It answers no Leave.
type queueing struct{ *lasting }

func (queueing) Enqueue(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{}, nil
}

func (queueing) Leave(context.Context, driver.HoldID) error { return errors.New("no answer") }

func TestASessionGetsAPlaceThatCannotEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := queueing{&lasting{client: s.connect(), term: 10 * time.Second}}
		c, err := lease.New(store)
		require.NoError(t, err)
		defer c.Close(context.Background())
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Mutex("it").LockContext(ctx), context.DeadlineExceeded)
		require.Zero(t, store.told(), "it is asked again")
		time.Sleep(lease.DefaultReleaseTimeout)
		require.Equal(t, 1, store.told())
	})
}

// silent is a store whose first Leave gets no answer.
type silent struct {
	queueing
	leaves atomic.Int64
}

func (s *silent) Leave(ctx context.Context, _ driver.HoldID) error {
	if s.leaves.Add(1) == 1 {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func TestALeaveWithoutAnAnswerIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := &silent{queueing: queueing{&lasting{client: s.connect(), term: 10 * time.Second}}}
		c, err := lease.New(store)
		require.NoError(t, err)
		defer c.Close(context.Background())
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Mutex("it").LockContext(ctx), context.DeadlineExceeded)
		time.Sleep(lease.DefaultReleaseTimeout)
		require.EqualValues(t, 2, store.leaves.Load())
		require.Zero(t, store.told())
	})
}

// shrinking is a store whose session becomes shorter while it is asked for a lock.
type shrinking struct{ *lasting }

func (s shrinking) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	s.term = 5 * time.Second
	return s.lasting.Acquire(ctx, req)
}

func TestAShorterSessionShortensTheHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := shrinking{&lasting{client: s.connect(), term: 10 * time.Second}}
		c, err := lease.New(store, lease.WithMargin(time.Second))
		require.NoError(t, err)
		defer c.Close(context.Background())
		l, a := c.Mutex("it"), as(locks.NewOwner())
		h := hold(t, l, a)
		until, _ := h.Deadline()
		require.Equal(t, 4*time.Second, time.Until(until))
		require.NoError(t, l.UnlockContext(a))
	})
}

// pausing is a store whose process stands still for three sessions before a request for a lock
// leaves. The request gets no answer, and is carried out two seconds after the client learned of
// the failure.
type pausing struct {
	*lasting
	once sync.Once
}

func (s *pausing) pauses(carryOut func()) (paused bool) {
	s.once.Do(func() {
		time.Sleep(3 * s.term)
		time.AfterFunc(2*time.Second, carryOut)
		paused = true
	})
	return paused
}

func (s *pausing) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if s.pauses(func() { s.lasting.Acquire(context.Background(), req) }) {
		return driver.Reply{}, errNetwork
	}
	return s.lasting.Acquire(ctx, req)
}

func TestASessionKeepsNoLockForARequestThatLeftLate(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := &pausing{lasting: &lasting{client: s.connect(), term: 10 * time.Second}}
		c, err := lease.New(store, lease.WithTTL(time.Hour), lease.WithMargin(time.Second))
		require.NoError(t, err)
		defer c.Close(context.Background())
		_, err = c.Mutex("it").TryLockContext(as(locks.NewOwner()))
		require.ErrorIs(t, err, errNetwork)
		time.Sleep(2*time.Second + time.Millisecond)
		require.NotEmpty(t, s.holder("it"), "the late request is carried out")
		time.Sleep(5 * time.Second) // the lock of this store ends by itself after ten
		require.Empty(t, s.holder("it"))
	})
}

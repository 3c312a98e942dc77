package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestAnOutageFailsTheFirstAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		conn.set(func(c *client) { c.down = true })
		l := open(t, conn).Mutex("it")
		began := time.Now()
		require.ErrorIs(t, l.LockContext(as(locks.NewOwner())), errNetwork)
		_, err := l.TryLockContext(as(locks.NewOwner()))
		require.ErrorIs(t, err, errNetwork)
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestAWaiterSurvivesAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, holder := open(t, conn).Mutex("it"), open(t, s.connect()).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, holder, a)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, l.LockContext(b)) })
		synctest.Wait()
		conn.set(func(c *client) { c.down = true })
		time.Sleep(time.Minute)
		before := s.count("acquire")
		require.NoError(t, holder.UnlockContext(a))
		conn.set(func(c *client) { c.down = false })
		began := time.Now()
		wg.Wait()
		require.LessOrEqual(t, time.Since(began), 3*time.Second, "it asks often enough")
		require.Equal(t, before+1, s.count("acquire"))
		require.NoError(t, l.UnlockContext(b))
	})
}

// counting counts the requests that do not get there either.
type counting struct {
	*client
	n *int
}

func (c counting) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	c.mu.Lock()
	*c.n++
	c.mu.Unlock()
	return c.client.Acquire(ctx, req)
}

func TestRequestsBecomeRareDuringAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, n := counting{s.connect(), new(int)}, 0
		conn.n = &n
		c, err := lease.New(conn)
		require.NoError(t, err)
		defer c.Close(t.Context())
		hold(t, open(t, s.connect()).Mutex("it"), as(locks.NewOwner()))
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			err := c.Mutex("it").LockContext(ctx)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorIs(t, err, errNetwork, "the last error of the store comes with that of the context")
		})
		synctest.Wait()
		conn.set(func(c *client) { c.down = true })
		wg.Wait()
		conn.mu.Lock()
		defer conn.mu.Unlock()
		require.Greater(t, n, 250, "each two seconds or so")
		require.Less(t, n, 700)
	})
}

func TestALocalWaiterSurvivesAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l := open(t, conn, lease.WithMaxLocalHandoffs(0)).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		h := hold(t, l, a)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, l.LockContext(b)) })
		synctest.Wait()
		conn.set(func(c *client) { c.down = true })
		<-h.Lost()
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		time.Sleep(time.Minute)
		conn.set(func(c *client) { c.down = false })
		wg.Wait()
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestAPermanentRefusalEndsAWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store := &fickle{client: s.connect()}
		c, err := lease.New(store)
		require.NoError(t, err)
		defer c.Close(t.Context())
		holder, a, b := open(t, s.connect()).Mutex("it"), as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, holder, a)
		got := make(chan error, 1)
		go func() { got <- c.Mutex("it").LockContext(b) }()
		synctest.Wait()
		store.fail(driver.ErrUnavailable, driver.ErrRefused)
		time.Sleep(time.Minute)
		require.Empty(t, got, "that is temporary")
		store.fail(driver.ErrRefused)
		require.ErrorIs(t, <-got, driver.ErrRefused)
		store.fail(locks.ErrForeign)
		require.ErrorIs(t, c.Mutex("it").LockContext(b), locks.ErrForeign)
		require.NoError(t, holder.UnlockContext(a))
	})
}

// fickle is a store that answers requests for locks with errors, once told so.
type fickle struct {
	*client
	errs []error
}

func (f *fickle) fail(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = errs
}

func (f *fickle) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	f.mu.Lock()
	errs := f.errs
	f.mu.Unlock()
	if errs != nil {
		return driver.Reply{}, joined(errs)
	}
	return f.client.Acquire(ctx, req)
}

type joined []error

func (joined) Error() string     { return "refused" }
func (j joined) Unwrap() []error { return j }

func TestAPlaceInAQueueSurvivesAnOutage(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, l, rival *lease.Mutex) {
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		require.NoError(t, rival.LockContext(a))
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, l.LockContext(b)) })
		synctest.Wait()
		place := q.queue()
		q.set(func(c *client) { c.down = true })
		time.Sleep(term)
		q.set(func(c *client) { c.down = false })
		time.Sleep(term)
		require.Len(t, place, 1)
		require.Equal(t, place, q.queue())
		require.NoError(t, rival.UnlockContext(a))
		wg.Wait()
		require.NoError(t, l.UnlockContext(b))
		require.Empty(t, q.queue())
	})
}

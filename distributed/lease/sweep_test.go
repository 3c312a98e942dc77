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

// tardy is a client whose next request for a lock fails and is carried out long after.
type tardy struct {
	*client
	by time.Duration
}

func (c *tardy) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if c.by == 0 {
		return c.client.Acquire(ctx, req)
	}
	time.AfterFunc(c.by, func() { c.client.Acquire(context.Background(), req) })
	c.by = 0
	return driver.Reply{}, errNetwork
}

func TestAnAcquisitionCarriedOutLateIsUndone(t *testing.T) {
	for _, by := range []time.Duration{time.Millisecond, time.Second, 5 * time.Second, term - 4*time.Second} {
		bubble(t, func(t *testing.T, s *server) {
			c, err := lease.New(&tardy{s.connect(), by}, lease.WithTTL(term))
			require.NoError(t, err)
			defer c.Close(t.Context())
			require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
			time.Sleep(by + time.Microsecond)
			require.NotEmpty(t, s.holder("it"), "it is carried out after %v", by)
			time.Sleep(max(by, term/10))
			synctest.Wait()
			require.Empty(t, s.holder("it"), "carried out after %v", by)
			require.Less(t, s.count("release"), 30)
		})
	}
}

func TestACancelledUnansweredAcquisitionIsUndoneSoon(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l := open(t, conn).Mutex("it")
		conn.set(func(c *client) { c.delay["acquire"] = time.Hour })
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Hour/2+time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		require.NotEmpty(t, s.holder("it"), "it has been carried out, and the answer takes another half of an hour")
		time.Sleep(51 * time.Millisecond)
		require.Empty(t, s.holder("it"))
		conn.set(func(c *client) { c.delay["acquire"] = 0 })
		o := as(locks.NewOwner())
		require.True(t, func() bool { ok, _ := l.TryLockContext(o); return ok }(), "nobody waits for the answer")
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestAnOutageDelaysTheUndoing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l := open(t, conn).Mutex("it")
		conn.set(func(c *client) { c.deaf = true })
		go func() { // the request gets there, what follows does not
			synctest.Wait()
			conn.set(func(c *client) { c.down = true })
		}()
		require.ErrorIs(t, l.LockContext(as(locks.NewOwner())), errNetwork)
		time.Sleep(term / 2)
		require.NotEmpty(t, s.holder("it"))
		conn.set(func(c *client) { c.deaf, c.down = false, false })
		time.Sleep(term/10 + 200*time.Millisecond)
		require.Empty(t, s.holder("it"), "before its lease is over")
	})
}

func TestAnOutageDelaysTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		hold(t, l, o)
		conn.set(func(c *client) { c.down = true })
		require.ErrorIs(t, l.UnlockContext(o), errNetwork)
		require.NotEmpty(t, s.holder("it"))
		conn.set(func(c *client) { c.down = false })
		time.Sleep(term / 5)
		require.Empty(t, s.holder("it"))
		n := s.count("release")
		time.Sleep(term)
		require.Equal(t, n, s.count("release"), "the answer ends it")
	})
}

func TestCloseEndsWhatIsBeingUndone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, err := lease.New(&tardy{s.connect(), time.Second}, lease.WithTTL(term))
		require.NoError(t, err)
		require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
		time.Sleep(time.Second + time.Microsecond)
		require.NotEmpty(t, s.holder("it"))
		began := time.Now()
		require.NoError(t, c.Close(t.Context()))
		require.Less(t, time.Since(began), time.Second)
		require.Empty(t, s.holder("it"), "tried once more")
	})
}

func TestOneOwnersUnlocksFreeNoOtherHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex("it")
		for range 2000 {
			a, b := as(locks.NewOwner()), as(locks.NewOwner())
			require.NoError(t, l.LockContext(a))
			errs := make(chan error, 3)
			var wg sync.WaitGroup
			wg.Go(func() {
				require.NoError(t, l.LockContext(b))
				h, err := l.Hold(b)
				if assert.NoError(t, err) {
					assert.NoError(t, h.Err())
				}
			})
			for l.QueueLength() == 0 {
				time.Sleep(time.Microsecond)
			}
			for range cap(errs) {
				wg.Go(func() { errs <- l.UnlockContext(a) })
			}
			wg.Wait()
			done := 0
			for range cap(errs) {
				if err := <-errs; err == nil {
					done++
				} else {
					require.ErrorIs(t, err, locks.ErrNotHeld)
				}
			}
			require.Equal(t, 1, done)
			require.NoError(t, l.UnlockContext(b), "it has its hold still")
		}
	})
}

// settling is a client whose next request for a lock fails, and which knows that it never comes.
type settling struct {
	*client
	settled bool
}

func (c *settling) Acquire(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{}, errNetwork
}

func (c *settling) Lookup(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{Settled: c.settled}, nil
}

func TestASettledAcquisitionIsNotUndone(t *testing.T) {
	for _, settled := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *server) {
			l := open(t, &settling{s.connect(), settled}).Mutex("it")
			require.ErrorIs(t, l.LockContext(as(locks.NewOwner())), errNetwork)
			time.Sleep(term)
			synctest.Wait()
			require.Equal(t, settled, s.count("release") == 0)
		})
	}
}

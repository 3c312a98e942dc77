package lease_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// openToClose is open for a client that the test closes itself.
func openToClose(t *testing.T, s driver.Store, opts ...lease.Option) *lease.Client {
	c, err := lease.New(s, append([]lease.Option{lease.WithTTL(term)}, opts...)...)
	require.NoError(t, err)
	return c
}

func TestCloseCountsARequestThatComesLater(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := openToClose(t, &tardy{s.connect(), 5 * time.Second})
		require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
		time.Sleep(time.Second)
		began := time.Now()
		require.EqualError(t, c.Close(t.Context()), `lease: close: acquisitions in doubt: 1; locks such as "it" `+
			`may stay held for up to 59s: a request without an answer may still be carried out`)
		require.Zero(t, time.Since(began), "Close does not wait for the request")
		time.Sleep(5 * time.Second)
		require.NotEmpty(t, s.holder("it"))
		time.Sleep(term)
		require.Empty(t, s.holder("it"))
	})
}

func TestCloseKnowsThatALateRequestCannotComeAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := openToClose(t, &tardy{s.connect(), time.Hour})
		require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
		time.Sleep(term)
		require.NoError(t, c.Close(t.Context()))
	})
}

// sure is a client whose releases settle what they do not find.
type sure struct{ *tardy }

func (s sure) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	r, err := s.tardy.Release(ctx, id)
	r.Settled = err == nil
	return r, err
}

func TestCloseCountsNothingThatAReleaseHasSettled(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := openToClose(t, sure{&tardy{s.connect(), time.Hour}})
		require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
		synctest.Wait()
		require.Equal(t, 1, s.count("release"))
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestCloseCountsACancelledRequestThatIsUnderWay(t *testing.T) {
	for what, after := range map[string]time.Duration{"during the grace": 0, "after the grace": time.Second} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				c := openToClose(t, conn)
				conn.set(func(c *client) { c.delay["acquire"] = time.Hour })
				ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Second)
				defer cancel()
				require.ErrorIs(t, c.Mutex("it").LockContext(ctx), context.DeadlineExceeded)
				time.Sleep(after)
				began := time.Now()
				err := c.Close(t.Context())
				require.ErrorContains(t, err, "lease: close: acquisitions in doubt: 1; ")
				require.Equal(t, lease.DefaultReleaseTimeout, time.Since(began))
			})
		})
	}
}

// The sweep finds what the request has taken, then the request fails.
func TestCloseCountsNoRequestWhoseEffectWasFound(t *testing.T) {
	for what, wrap := range map[string]func(c *client) driver.Store{
		"polled": func(c *client) driver.Store { return c },
		"queued": func(c *client) driver.Store { return queued{c, new([]string)} },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				c := openToClose(t, wrap(conn))
				conn.set(func(c *client) {
					c.delay["acquire"], c.delay["enqueue"] = 2*time.Second, 2*time.Second
					c.dropReply["acquire"], c.dropReply["enqueue"] = 1, 1
				})
				ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 500*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, c.Mutex("it").LockContext(ctx), context.DeadlineExceeded)
				time.Sleep(4 * time.Second)
				require.Empty(t, s.holder("it"))
				require.NoError(t, c.Close(t.Context()))
			})
		})
	}
}

func TestCloseCountsTheRequestOfACallerThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := openToClose(t, conn)
		conn.set(func(c *client) { c.delay["acquire"] = time.Hour })
		got := make(chan error, 1)
		go func() { got <- c.Mutex("it").LockContext(as(locks.NewOwner())) }()
		synctest.Wait()
		require.ErrorContains(t, c.Close(t.Context()), "lease: close: acquisitions in doubt: 1; ")
		require.Error(t, <-got)
	})
}

func TestCloseCountsAReleaseWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c, o := openToClose(t, conn), as(locks.NewOwner())
		holdMany(t, c, 3)
		l := c.Mutex("it")
		hold(t, l, o)
		conn.set(func(c *client) { c.down = true })
		require.ErrorIs(t, l.UnlockContext(o), errNetwork)
		err := c.Close(t.Context())
		require.ErrorContains(t, err, "lease: close: 0 of 3 holds released, acquisitions in doubt: 1; ")
		require.ErrorContains(t, err, "may stay held for up to 25s: ")
		require.ErrorIs(t, err, errNetwork)
		require.NotContains(t, err.Error(), "\n")
	})
}

func TestCloseCountsAnUnlockThatItCutsOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c, o := openToClose(t, conn), as(locks.NewOwner())
		l := c.Mutex("it")
		hold(t, l, o)
		conn.set(func(c *client) { c.delay["release"] = time.Hour })
		got := make(chan error, 1)
		go func() { got <- l.UnlockContext(o) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Close(ctx)
		require.ErrorContains(t, err, "lease: close: acquisitions in doubt: 1; ")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, <-got, locks.ErrLost)
	})
}

func TestCloseReleasesAgainUntilAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := openToClose(t, conn)
		conn.set(func(c *client) { c.deaf = true })
		go func() { // the request gets there, what follows does not
			synctest.Wait()
			conn.set(func(c *client) { c.down = true })
		}()
		require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
		require.NotEmpty(t, s.holder("it"))
		time.AfterFunc(time.Second, func() { conn.set(func(c *client) { c.deaf, c.down = false, false }) })
		require.NoError(t, c.Close(t.Context()), "the store is back before the release timeout")
		require.Empty(t, s.holder("it"))
	})
}

// The answer to a cancelled request comes, and the release of its grant is not answered.
func TestCloseCountsALateGrantUntilItIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := openToClose(t, conn)
		conn.set(func(c *client) { c.delay["acquire"], c.delay["release"] = 4*time.Second, time.Hour })
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Mutex("it").LockContext(ctx), context.DeadlineExceeded)
		time.Sleep(3*time.Second + time.Millisecond)
		require.NotEmpty(t, s.holder("it"))
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorContains(t, c.Close(ctx), "lease: close: acquisitions in doubt: 1; ")
	})
}

func TestCloseCountsAnEarlierRequestOfAHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		store := &straggling{queued: queued{s.connect(), waiting}}
		c := openToClose(t, store)
		rival := open(t, queued{s.connect(), waiting}).Mutex("it")
		o, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, rival, b)
		got := make(chan error, 1)
		go func() { got <- c.Mutex("it").LockContext(o) }()
		synctest.Wait()
		store.late(10 * time.Second)
		require.NoError(t, rival.UnlockContext(b)) // which wakes the waiter
		require.NoError(t, <-got)
		require.ErrorContains(t, c.Close(t.Context()),
			`lease: close: 1 of 1 holds released, acquisitions in doubt: 1; locks such as "it" `)
		require.Empty(t, s.holder("it"))
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, s.holder("it"), "the straggler has it")
	})
}

func TestAGroupCountsTheDoubtsOfAllItsClients(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var g driver.Group[int, *lease.Client]
		for kind := range 3 {
			c, err := g.Client(kind, func() (*lease.Client, error) {
				return lease.New(&tardy{s.connect(), time.Hour}, lease.WithTTL(time.Duration(kind+1)*term))
			})
			require.NoError(t, err)
			require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
			hold(t, c.Mutex(fmt.Sprint(kind)), as(locks.NewOwner()))
		}
		_, err := g.Close(t.Context())
		require.ErrorContains(t, err, "lease: close: 3 of 3 holds released, acquisitions in doubt: 3; locks such as \"it\" "+
			"may stay held for up to 3m0s: ")
	})
}

// A lock that a request takes shortly before it cannot come any more is released, although the
// store answers nothing then.
func TestAnOutageAtTheEndDelaysTheUndoing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := open(t, &tardy{conn, term - 5*time.Second})
		require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), errNetwork)
		time.Sleep(term - 5*time.Second + time.Microsecond)
		require.NotEmpty(t, s.holder("it"))
		conn.set(func(c *client) { c.down = true })
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, s.holder("it"))
		conn.set(func(c *client) { c.down = false })
		time.Sleep(term / 5)
		require.Empty(t, s.holder("it"), "before its lease is over")
	})
}

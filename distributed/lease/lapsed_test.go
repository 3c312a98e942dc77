package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// lapse has a hold of the lock called it that is lost by time, while the store has carried out its
// renewals and keeps the lock. From then on the store is down.
func lapse(t *testing.T, s *server, c *lease.Client, conn *client) (l *lease.Mutex, unlock func() error) {
	t.Helper()
	l, o := c.Mutex("it"), as(locks.NewOwner())
	h := hold(t, l, o)
	conn.set(func(c *client) { c.deaf = true })
	<-h.Lost()
	require.NotEmpty(t, s.holder("it"))
	conn.set(func(c *client) { c.deaf, c.down = false, true })
	return l, func() error { return l.UnlockContext(o) }
}

func TestAnUnlockOfALostHoldFreesWhatARenewalKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		_, unlock := lapse(t, s, open(t, conn), conn)
		began := time.Now()
		require.ErrorIs(t, unlock(), locks.ErrLost)
		require.Zero(t, time.Since(began), "the owner waits for no request")
		time.Sleep(time.Second)
		conn.set(func(c *client) { c.down = false })
		time.Sleep(5 * time.Second)
		require.Empty(t, s.holder("it"), "before its lease is over")
	})
}

func TestCloseCountsALostHoldThatARenewalMayHaveKept(t *testing.T) {
	for what, unlocks := range map[string]bool{"unlocked": true, "not unlocked": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				c := openToClose(t, conn)
				_, unlock := lapse(t, s, c, conn)
				if unlocks {
					require.ErrorIs(t, unlock(), locks.ErrLost)
				}
				err := c.Close(t.Context())
				require.ErrorContains(t, err, `lease: close: acquisitions in doubt: 1; locks such as "it" `)
				require.ErrorIs(t, err, errNetwork)
			})
		})
	}
}

// extendInDoubt has a hold of the lock called it that is lost by time. The store has carried out an
// extension by an hour, whose caller did not wait for the answer. From then on the store is down.
func extendInDoubt(t *testing.T, s *server, c *lease.Client, conn *client) (unlock func() error) {
	t.Helper()
	l, o := c.Mutex("it"), as(locks.NewOwner())
	h := hold(t, l, o)
	conn.set(func(c *client) { c.deaf = true })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, h.Extend(ctx, time.Hour))
	require.NoError(t, h.Err())
	conn.set(func(c *client) { c.deaf, c.down = false, true })
	<-h.Lost()
	require.NotEmpty(t, s.holder("it"))
	return func() error { return l.UnlockContext(o) }
}

func TestAnUnlockOfALostHoldFreesWhatAnExtensionKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		unlock := extendInDoubt(t, s, open(t, conn), conn)
		require.ErrorIs(t, unlock(), locks.ErrLost)
		time.Sleep(3 * term)
		require.NotEmpty(t, s.holder("it"))
		conn.set(func(c *client) { c.down = false })
		time.Sleep(10 * time.Minute)
		require.Empty(t, s.holder("it"), "long before the hour is over")
	})
}

func TestCloseCountsALostHoldThatAnExtensionMayHaveKept(t *testing.T) {
	for what, unlocks := range map[string]bool{"unlocked": true, "not unlocked": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				c := openToClose(t, conn)
				unlock := extendInDoubt(t, s, c, conn)
				if unlocks {
					require.ErrorIs(t, unlock(), locks.ErrLost)
				}
				time.Sleep(3 * term)
				require.ErrorContains(t, c.Close(t.Context()), "in doubt: 1")
				require.NotEmpty(t, s.holder("it"))
			})
		})
	}
}

// shortenInDoubt has a hold of the lock called it, which is not renewed. A request to shorten it
// gets lost, and the store is down from then on: it keeps the lock for a whole term.
func shortenInDoubt(t *testing.T, c *lease.Client, conn *client) (h locks.Hold, unlock func() error) {
	t.Helper()
	l, o := c.Mutex("it", lease.WithFixedTTL(term)), as(locks.NewOwner())
	h = hold(t, l, o)
	conn.set(func(c *client) { c.down = true })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.Error(t, h.Extend(ctx, time.Second))
	require.NoError(t, h.Err())
	return h, func() error { return l.UnlockContext(o) }
}

func TestAnUnlockFreesWhatALostRequestDidNotShorten(t *testing.T) {
	for what, lapses := range map[string]bool{"valid": false, "lost": true} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				h, unlock := shortenInDoubt(t, open(t, conn), conn)
				if lapses {
					<-h.Lost()
				}
				require.ErrorIs(t, unlock(), locks.ErrLost)
				time.Sleep(term / 4)
				require.NotEmpty(t, s.holder("it"))
				conn.set(func(c *client) { c.down = false })
				time.Sleep(term / 4)
				require.Empty(t, s.holder("it"), "before its lease is over")
			})
		})
	}
}

func TestCloseCountsWhatALostRequestDidNotShorten(t *testing.T) {
	for what, unlocks := range map[string]bool{"unlocked": true, "not unlocked": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				c := openToClose(t, conn)
				h, unlock := shortenInDoubt(t, c, conn)
				<-h.Lost()
				if unlocks {
					require.ErrorIs(t, unlock(), locks.ErrLost)
				}
				time.Sleep(term / 4)
				require.ErrorContains(t, c.Close(t.Context()), "in doubt: 1")
				require.NotEmpty(t, s.holder("it"))
			})
		})
	}
}

func TestCloseFreesALostHoldThatARenewalKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := openToClose(t, conn)
		lapse(t, s, c, conn)
		conn.set(func(c *client) { c.down = false })
		require.NoError(t, c.Close(t.Context()))
		require.Empty(t, s.holder("it"))
	})
}

func TestNoReleaseFollowsAHoldThatTheStoreDenies(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := openToClose(t, s.connect())
		l, o := c.Mutex("it"), as(locks.NewOwner())
		h := hold(t, l, o)
		s.evict("it")
		<-h.Lost()
		require.ErrorIs(t, l.UnlockContext(o), locks.ErrLost)
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, s.count("release"))
	})
}

func TestASessionFreesWhatARenewalOfALostHoldKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := open(t, &lasting{client: conn, term: term})
		_, unlock := lapse(t, s, c, conn)
		conn.set(func(c *client) { c.down = false })
		require.ErrorIs(t, unlock(), locks.ErrLost)
		synctest.Wait()
		require.Zero(t, s.count("release"), "the session was told of the loss")
	})
}

// An outage leaves a sweep for each unlock.
func TestCloseReleasesWhatAnOutageHasLeftInBatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := &bulky{client: s.connect()}
		c, o := openToClose(t, conn), as(locks.NewOwner())
		holdMany(t, c, 300)
		ls := make([]*lease.Mutex, 250)
		for i := range ls {
			ls[i] = c.Mutex(time.Duration(i).String())
			hold(t, ls[i], o)
		}
		conn.set(func(c *client) { c.down = true })
		for _, l := range ls {
			go func() { assert.ErrorIs(t, l.UnlockContext(o), locks.ErrLost) }()
		}
		time.Sleep(lease.DefaultReleaseTimeout)
		synctest.Wait()
		conn.set(func(c *client) { c.down = false })
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, s.held())
		require.Zero(t, s.count("release"))
		require.LessOrEqual(t, len(conn.sizes), 6)
	})
}

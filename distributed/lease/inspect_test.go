package lease_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// inspected is a client whose store describes its locks.
type inspected struct {
	*client
	id, identity string
	announced    []time.Duration
	refuse       error
	queue        []string // what the store says of waiters
	shared       bool
}

var (
	_ driver.Inspector = (*inspected)(nil)
	_ driver.Announcer = (*inspected)(nil)
)

func (c *inspected) Identify(client, identity string) { c.id, c.identity = client, identity }

func (c *inspected) Announce(_ context.Context, ttl time.Duration) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.announced = append(c.announced, ttl)
	if c.refuse == nil {
		c.s.identities[c.id] = c.identity
	}
	return c.refuse
}

func (c *inspected) announcements() int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return len(c.announced)
}

func (c *inspected) claim(acquisition string) driver.Claim {
	id, _, _ := strings.Cut(acquisition, ":")
	return driver.Claim{Acquisition: acquisition, Identity: c.s.identities[id]}
}

func (c *inspected) Inspect(ctx context.Context, name string) (s driver.State, err error) {
	err = c.call(ctx, "inspect", func() {
		s.Shared, s.Waiting = c.shared, -1
		if r := c.s.live(name); r != nil {
			h := c.claim(r.acquisition)
			h.Token, h.Left = r.token, time.Until(r.expires)
			s.Holders = []driver.Claim{h}
		}
		if c.queue != nil {
			s.Waiting = len(c.queue)
			for _, w := range c.queue {
				s.Waiters = append(s.Waiters, c.claim(w))
			}
		}
	})
	return s, err
}

// inspecting returns a client of s whose locks can be inspected.
func inspecting(t testing.TB, s *server, opts ...lease.Option) (*lease.Client, *inspected) {
	store := &inspected{client: s.connect()}
	c, err := lease.New(store, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c, store
}

func inspect(t *testing.T, l locks.Inspector) locks.Info {
	t.Helper()
	i, err := l.Inspect(context.Background())
	require.NoError(t, err)
	return i
}

func TestInspectDescribesTheHolderToAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a, _ := inspecting(t, s, lease.WithLabel("orders"))
		b, _ := inspecting(t, s)
		began := time.Now()
		owner := locks.NewOwner()
		require.NoError(t, a.Mutex("it").LockContext(locks.WithOwner(t.Context(), owner)))
		time.Sleep(time.Second)
		synctest.Wait()

		host, err := os.Hostname()
		require.NoError(t, err)
		want := locks.Party{
			Label: "orders", Host: host, PID: os.Getpid(),
			Since: began, Left: lease.DefaultLease - time.Second, Token: 1,
		}
		seen := inspect(t, b.Mutex("it"))
		require.True(t, seen.Held)
		require.Len(t, seen.Holders, 1)
		require.WithinDuration(t, began, seen.Holders[0].Since, 0)
		seen.Holders[0].Since = began
		require.Equal(t, []locks.Party{want}, seen.Holders)
		require.Equal(t, -1, seen.Waiting)

		want.Owner = owner
		own := inspect(t, a.Mutex("it")).Holders
		require.Len(t, own, 1)
		own[0].Since = began
		require.Equal(t, []locks.Party{want}, own)
	})
}

func TestAStrangersNameIsItsLabel(t *testing.T) {
	s := newServer()
	c, _ := inspecting(t, s)
	s.locks["it"] = &record{"java\n:1", 1, time.Now().Add(time.Hour), 7}
	seen := inspect(t, c.Mutex("it"))
	require.Len(t, seen.Holders, 1)
	h := seen.Holders[0]
	require.Equal(t, "java\uFFFD:1", h.Label)
	require.Equal(t, uint64(7), h.Token)
	require.True(t, h.Since.IsZero())
}

func TestInspectCountsTheLocalQueueBehindTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a, _ := inspecting(t, s)
		b, store := inspecting(t, s)
		ctx := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, a.Mutex("it").LockContext(ctx))
		l := b.Mutex("it")
		var waiters []locks.Owner
		for range 3 {
			o := locks.NewOwner()
			waiters = append(waiters, o)
			go func() {
				own := locks.WithOwner(context.Background(), o)
				if l.LockContext(own) == nil {
					l.UnlockContext(own)
				}
			}()
			synctest.Wait()
		}
		owners := func(i locks.Info) (all []locks.Owner) {
			for _, w := range i.Waiters {
				all = append(all, w.Owner)
			}
			return all
		}
		unknown := inspect(t, l)
		require.Equal(t, -1, unknown.Waiting)
		require.Equal(t, waiters, owners(unknown))

		store.queue = []string{"java:1"}
		known := inspect(t, l)
		require.Equal(t, 4, known.Waiting)
		require.Equal(t, append([]locks.Owner{0}, waiters...), owners(known))
		require.Equal(t, "java:1", known.Waiters[0].Label)
		require.Equal(t, os.Getpid(), known.Waiters[1].PID)
		require.NoError(t, a.Mutex("it").UnlockContext(ctx))
		synctest.Wait()
		require.False(t, inspect(t, l).Held)
	})
}

func TestAWaiterInTheStoresQueueCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a, _ := inspecting(t, s)
		b, store := inspecting(t, s)
		ctx := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, a.Mutex("it").LockContext(ctx))
		l, o := b.Mutex("it"), locks.NewOwner()
		own := locks.WithOwner(t.Context(), o)
		go l.LockContext(own)
		synctest.Wait()
		store.queue = []string{"java:1", s.asked["it"], "java:2"}
		i := inspect(t, l)
		require.Equal(t, 3, i.Waiting)
		require.Len(t, i.Waiters, 3)
		require.Equal(t, o, i.Waiters[1].Owner)
		require.False(t, i.Waiters[1].Since.IsZero())
		store.queue = nil
		require.NoError(t, a.Mutex("it").UnlockContext(ctx))
		synctest.Wait()
		require.NoError(t, l.UnlockContext(own))
	})
}

func TestInspectKnowsEveryHoldOfASharedLock(t *testing.T) {
	s := newServer()
	c, store := inspecting(t, s)
	store.shared = true
	l, o := c.Mutex("it", lease.WithShared()), locks.NewOwner()
	ctx := locks.WithOwner(t.Context(), o)
	require.NoError(t, l.LockContext(ctx))
	i := inspect(t, l)
	require.True(t, i.Shared)
	require.Len(t, i.Holders, 1)
	require.Equal(t, o, i.Holders[0].Owner)
	require.NoError(t, l.UnlockContext(ctx))
	i = inspect(t, l)
	require.False(t, i.Shared, "a free lock is shared by nobody")
}

func TestInspectionsReturnWhyTheyFail(t *testing.T) {
	s := newServer()
	c, store := inspecting(t, s)
	l := c.Mutex("it")
	store.set(func(c *client) { c.down = true })
	_, err := l.Inspect(t.Context())
	require.ErrorIs(t, err, errNetwork)
	require.ErrorContains(t, err, `lease: inspect "it"`)
	require.NoError(t, c.Close(t.Context()))
	_, err = l.Inspect(t.Context())
	require.ErrorIs(t, err, locks.ErrClosed)

	plain, err := lease.New(s.connect())
	require.NoError(t, err)
	defer plain.Close(t.Context())
	_, err = plain.Mutex("it").Inspect(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestAClientAnnouncesItselfOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := inspecting(t, newServer())
		l, ctx := c.Mutex("it"), locks.WithOwner(t.Context(), locks.NewOwner())
		pair := func() {
			require.NoError(t, l.LockContext(ctx))
			require.NoError(t, l.UnlockContext(ctx))
			synctest.Wait()
		}
		require.Zero(t, store.announcements(), "the client is not in use")
		pair()
		time.Sleep(time.Minute)
		pair()
		require.Equal(t, 1, store.announcements())
		time.Sleep(time.Second)
		pair()
		require.Equal(t, 2, store.announcements())
		require.Equal(t, []time.Duration{2 * time.Minute, 2 * time.Minute}, store.announced)
	})
}

func TestAHolderThatStaysAnnouncesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := inspecting(t, newServer(), lease.WithTTL(time.Hour))
		ctx := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, c.Mutex("it").LockContext(ctx))
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		require.InDelta(t, 10, store.announcements(), 3)
		require.Equal(t, 2*time.Hour, store.announced[0], "it lasts longer than a hold that is not renewed")
	})
}

func TestAnAnnouncementThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := inspecting(t, newServer())
		store.refuse = errNetwork
		l, ctx := c.Mutex("it"), locks.WithOwner(t.Context(), locks.NewOwner())
		for range 12 {
			require.NoError(t, l.LockContext(ctx), "an announcement has no effect on locks")
			require.NoError(t, l.UnlockContext(ctx))
			time.Sleep(time.Second)
		}
		require.Equal(t, 2, store.announcements())
	})
}

func TestABadLabelIsRefused(t *testing.T) {
	for _, label := range []string{strings.Repeat("x", lease.MaxLabel+1), "two\nlines"} {
		_, err := lease.New(newServer().connect(), lease.WithLabel(label))
		require.ErrorContains(t, err, "lease: label")
	}
}

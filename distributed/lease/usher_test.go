package lease_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// ushering is a client whose store registers waiters.
type ushering struct {
	*client
	waiting   *[]string // guarded by the server's mutex
	listening bool      // notifications are on before anybody asks
}

var _ lease.Usher = ushering{}

func (u ushering) Await(ctx context.Context, name, acquisition string, d time.Duration) (r lease.Reply, err error) {
	err = u.call(ctx, "await", func() {
		rec := u.s.live(name)
		*u.waiting = slices.DeleteFunc(*u.waiting, func(o string) bool { return o == acquisition })
		if rec == nil || rec.acquisition == acquisition {
			u.s.locks[name] = &record{acquisition, 1, time.Now().Add(d), 0}
			r = lease.Reply{Held: true}
			return
		}
		*u.waiting = append(*u.waiting, acquisition)
		r = lease.Reply{Wait: time.Until(rec.expires), Listening: u.listening}
	})
	return r, err
}

func (u ushering) Forget(ctx context.Context, name, acquisition string) {
	u.call(ctx, "forget", func() {
		*u.waiting = slices.DeleteFunc(*u.waiting, func(o string) bool { return o == acquisition })
	})
}

func (u ushering) known() []string {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return slices.Clone(*u.waiting)
}

func ushered(t *testing.T, f func(t *testing.T, u ushering, l, holder *lease.Mutex)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *server) {
		u := ushering{client: s.connect(), waiting: new([]string)}
		l := open(t, u).Mutex("it")
		holder := open(t, s.connect()).Mutex("it")
		require.NoError(t, holder.LockContext(as(locks.NewOwner())))
		f(t, u, l, holder)
	})
}

func TestAWaiterIsRegisteredUntilItHasTheLock(t *testing.T) {
	ushered(t, func(t *testing.T, u ushering, l, holder *lease.Mutex) {
		ok, err := l.TryLockContext(as(locks.NewOwner()))
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, u.s.count("await"), "who does not wait is not announced")
		o := as(locks.NewOwner())
		got := make(chan error, 1)
		go func() { got <- l.LockContext(o) }()
		synctest.Wait()
		require.Len(t, u.known(), 1)
		require.Equal(t, 2, u.s.count("await"), "once more when it has subscribed")
		u.s.evict("it")
		require.NoError(t, <-got)
		require.Empty(t, u.known())
		require.NoError(t, l.UnlockContext(o))
		synctest.Wait()
		require.Zero(t, u.s.count("forget"))
	})
}

func TestAWaiterThatGivesUpIsForgotten(t *testing.T) {
	ushered(t, func(t *testing.T, u ushering, l, holder *lease.Mutex) {
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		got := make(chan error, 1)
		go func() { got <- l.LockContext(ctx) }()
		synctest.Wait()
		require.Len(t, u.known(), 1)
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		synctest.Wait()
		require.Empty(t, u.known())
	})
}

func TestAWaiterCancelledDuringARequestIsForgottenAfterIt(t *testing.T) {
	for _, delay := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond} {
		ushered(t, func(t *testing.T, u ushering, l, holder *lease.Mutex) {
			u.set(func(c *client) { c.delay["await"] = delay })
			ctx, cancel := context.WithCancel(as(locks.NewOwner()))
			got := make(chan error, 1)
			go func() { got <- l.LockContext(ctx) }()
			synctest.Wait()
			cancel()
			require.ErrorIs(t, <-got, context.Canceled)
			require.Zero(t, u.s.count("forget"))
			time.Sleep(time.Second)
			require.Equal(t, 1, u.s.count("await"))
			require.Empty(t, u.known())
			require.Equal(t, 1, u.s.count("forget"))
		})
	}
}

func TestAListeningWaiterDoesNotAskAgain(t *testing.T) {
	ushered(t, func(t *testing.T, u ushering, l, holder *lease.Mutex) {
		u.listening = true
		l = open(t, u).Mutex("it")
		o := as(locks.NewOwner())
		got := make(chan error, 1)
		go func() { got <- l.LockContext(o) }()
		synctest.Wait()
		require.Equal(t, 1, u.s.count("await"))
		u.s.evict("it")
		require.NoError(t, <-got)
		require.Equal(t, 2, u.s.count("await"))
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestARequestOfWhichNothingIsKnownLeavesNobodyWaiting(t *testing.T) {
	ushered(t, func(t *testing.T, u ushering, l, holder *lease.Mutex) {
		o := as(locks.NewOwner())
		got := make(chan error, 1)
		go func() { got <- l.LockContext(o) }()
		synctest.Wait()
		before := u.known()
		u.set(func(c *client) { c.dropReply["await"], c.dropReply["recall"] = 1, 1 })
		u.s.mu.Lock()
		u.s.notify("it")
		u.s.mu.Unlock()
		time.Sleep(time.Second)
		require.Len(t, u.known(), 1)
		require.NotEqual(t, before, u.known(), "it goes on under another name")
		u.s.evict("it")
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(o))
		time.Sleep(time.Minute)
		require.Empty(t, u.known())
	})
}

func TestCloseHasWaitersForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		u := ushering{client: s.connect(), waiting: new([]string)}
		c, err := lease.New(u)
		require.NoError(t, err)
		holder := open(t, s.connect()).Mutex("it")
		require.NoError(t, holder.LockContext(as(locks.NewOwner())))
		got := make(chan error, 1)
		go func() { got <- c.Mutex("it").LockContext(as(locks.NewOwner())) }()
		synctest.Wait()
		require.Len(t, u.known(), 1)
		u.set(func(c *client) { c.delay["forget"] = 100 * time.Millisecond })
		require.NoError(t, c.Close(context.Background()))
		assert.Empty(t, u.known())
		require.ErrorIs(t, <-got, locks.ErrClosed)
	})
}

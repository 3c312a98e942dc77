package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

func TestAFixedHoldIsNotHandedARenewedOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		renewed, fixed := c.Mutex("it"), c.Mutex("it", lease.WithFixedTTL(10*time.Second))
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, renewed, a)
		got := make(chan error, 1)
		go func() { got <- fixed.LockContext(b) }()
		synctest.Wait()
		require.NoError(t, renewed.UnlockContext(a))
		require.NoError(t, <-got)
		h, err := fixed.Hold(b)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.ErrorIs(t, h.Err(), locks.ErrLost, "it is not renewed")
		require.Empty(t, s.holder("it"))
		require.ErrorIs(t, fixed.UnlockContext(b), locks.ErrLost)
	})
}

func TestAShortExtensionEndsBeforeTheNextLocalHold(t *testing.T) {
	for name, unanswered := range map[string]bool{"answered": false, "under way": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				l := open(t, conn).Mutex("it")
				a, b := as(locks.NewOwner()), as(locks.NewOwner())
				h := hold(t, l, a)
				got := make(chan error, 1)
				go func() { got <- l.LockContext(b) }()
				synctest.Wait()
				var extended sync.WaitGroup
				if unanswered {
					conn.set(func(c *client) { c.delay["renew"] = time.Second })
				}
				extended.Go(func() { _ = h.Extend(a, 500*time.Millisecond) })
				synctest.Wait()
				require.NoError(t, l.UnlockContext(a))
				require.NoError(t, <-got)
				next, err := l.Hold(b)
				require.NoError(t, err)
				ends, _ := next.Deadline()
				require.Greater(t, time.Until(ends), term/2)
				extended.Wait()
				time.Sleep(3 * term)
				require.NoError(t, next.Err())
				require.NoError(t, l.UnlockContext(b))
			})
		})
	}
}

// meeting is a context that calls meet once it is asked for its deadline.
type meeting struct {
	context.Context
	meet func()
}

func (m *meeting) Deadline() (time.Time, bool) {
	if meet := m.meet; meet != nil {
		m.meet = nil
		meet()
	}
	return m.Context.Deadline()
}

// Extend has found the hold valid when it asks the context.
func TestAnExtensionThatMeetsTheUnlockLeavesTheNextHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		h := hold(t, l, a)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		synctest.Wait()
		ctx := &meeting{a, func() {
			require.NoError(t, l.UnlockContext(a))
			require.NoError(t, <-got)
		}}
		require.ErrorIs(t, h.Extend(ctx, time.Second), locks.ErrLost)
		require.Nil(t, ctx.meet, "the unlock came while Extend was under way")
		next, err := l.Hold(b)
		require.NoError(t, err)
		ends, _ := next.Deadline()
		require.Greater(t, time.Until(ends), term/2)
		require.NoError(t, l.UnlockContext(b))
	})
}

// The unlock sees a waiter, hands the lock off, and finds the waiter gone.
func TestAnUnlockThatMeetsACancellationLeavesNoLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		for range 3000 {
			hold(t, l, a)
			ctx, cancel := context.WithCancel(b)
			var wg sync.WaitGroup
			wg.Go(func() {
				if l.LockContext(ctx) == nil {
					require.NoError(t, l.UnlockContext(b))
				}
			})
			synctest.Wait()
			wg.Go(cancel)
			wg.Go(func() { require.NoError(t, l.UnlockContext(a)) })
			wg.Wait()
			synctest.Wait()
			require.Empty(t, s.holder("it"), "nobody has it")
		}
	})
}

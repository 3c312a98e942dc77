package lockstest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// asking is a context of the program's own type. Its methods run f before they answer, at most most
// times and until f returns false. f never runs in two goroutines at once.
type asking struct {
	context.Context
	f func() (again bool)

	mu      sync.Mutex
	running bool
	most    int
}

func (c *asking) ask() {
	c.mu.Lock()
	skip := c.running || c.most == 0
	if !skip {
		c.running = true
		c.most--
	}
	c.mu.Unlock()
	if skip {
		return
	}
	again := c.f()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = !again
}

func (c *asking) Deadline() (time.Time, bool) { c.ask(); return c.Context.Deadline() }
func (c *asking) Done() <-chan struct{}       { c.ask(); return c.Context.Done() }
func (c *asking) Err() error                  { c.ask(); return c.Context.Err() }
func (c *asking) Value(key any) any           { c.ask(); return c.Context.Value(key) }

// contextsRunFreely uses a context whose methods wait for another user of the lock. A method of a
// program's context may take a mutex of the program, which the other user may hold. Then the two
// deadlock if the lock calls the context while it holds a mutex of its own.
func contextsRunFreely(s *suite) {
	a, b := s.party(), s.party()
	ctx := &asking{Context: s.ctx, f: func() bool {
		c := b.start(func(c *call) {
			if ok, _ := s.l.TryLockContext(s.ctx); ok {
				c.err = s.l.UnlockContext(s.ctx)
			}
			if l, ok := s.l.(locks.Inspector); ok {
				_, _ = l.Inspect(s.ctx)
			}
		})
		timeout := time.NewTimer(s.cfg.Timeout / 2) // the caller's call must not be late as well
		defer timeout.Stop()
		select {
		case <-c.done:
			if c.err != nil {
				s.Errorf("UnlockContext: %v", c.err)
			}
			return true
		case <-timeout.C:
			s.Errorf("another call waits while the lock calls a method of a context")
			return false
		}
	}}
	refill := func() {
		ctx.mu.Lock()
		defer ctx.mu.Unlock()
		ctx.most = 16 // a client of a server may ask for hundreds of values
	}
	refill()
	require.NoError(s, a.lock(s.l, ctx), "LockContext")
	if s.cfg.Reentrant {
		refill()
		require.NoError(s, a.lock(s.l, ctx), "LockContext of the holder")
		require.NoError(s, a.unlock(s.l, ctx), "UnlockContext")
	}
	if l, ok := s.l.(locks.Leased); ok {
		refill()
		a.do("Hold", func(c *call) { _, c.err = l.Hold(ctx) })
	}
	if l, ok := s.l.(locks.Inspector); ok {
		refill()
		a.do("Inspect", func(c *call) { _, c.err = l.Inspect(ctx) })
	}
	refill()
	require.NoError(s, a.unlock(s.l, ctx), "UnlockContext")
	refill()
	a.do("TryLockContext", func(c *call) {
		if c.ok, c.err = s.l.TryLockContext(ctx); c.ok {
			c.err = s.l.UnlockContext(ctx)
		}
	})
}

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
	f      func() (again bool)
	values bool // Value asks too

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

// refill lets the methods run f at most n times from now on. It returns how often they could still
// have run f.
func (c *asking) refill(n int) (left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left, c.most = c.most, n
	return left
}

func (c *asking) Deadline() (time.Time, bool) { c.ask(); return c.Context.Deadline() }
func (c *asking) Done() <-chan struct{}       { c.ask(); return c.Context.Done() }
func (c *asking) Err() error                  { c.ask(); return c.Context.Err() }

func (c *asking) Value(key any) any {
	if c.values {
		c.ask()
	}
	return c.Context.Value(key)
}

// contextsRunFreely uses a context whose methods wait for another user of the lock. A method of a
// program's context may take a mutex of the program, which the other user may hold. Then the two
// deadlock if the lock calls the context while it holds a mutex of its own.
func contextsRunFreely(s *suite) {
	a, b := s.party(), s.party()
	ctx := &asking{Context: s.ctx, values: true, f: func() bool {
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
	refill := func() { ctx.refill(16) } // a client of a server may ask for hundreds of values
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

// contextsKeepNoTurn uses a context whose methods wait until another user has acquired and released
// the lock. A method of a program's context may take a mutex of the program, which the other user
// may hold while it waits for the lock. Then the two deadlock if the lock calls the context while
// the caller has the lock, a turn or a place for which the other user waits. The method Value is
// left out: a client of a server asks for its values, such as the span of a trace, in the middle
// of a request.
func contextsKeepNoTurn(s *suite) {
	a, b, holder := s.party(), s.party(), s.party()
	passes := func() bool {
		c := b.start(func(c *call) {
			if c.err = s.x.LockContext(s.ctx); c.err == nil {
				c.err = s.x.UnlockContext(s.ctx)
			}
		})
		timeout := time.NewTimer(s.cfg.Timeout / 2) // the caller's call must not be late as well
		defer timeout.Stop()
		select {
		case <-c.done:
			if c.err != nil {
				s.Errorf("the other user: %v", c.err)
			}
			return true
		case <-timeout.C:
			s.Errorf("another user cannot acquire while the lock calls a method of a context")
			return false
		}
	}

	ctx := &asking{Context: s.ctx, f: passes}
	ctx.refill(16)
	require.NoError(s, a.lock(s.l, ctx), "LockContext")
	ctx.refill(0) // the holder's own calls are not meant
	a.mustUnlock(s.l)
	ctx.refill(16)
	_, err := a.try(s.l, ctx)
	ctx.refill(0)
	require.NoError(s, err, "TryLockContext")
	a.mustUnlock(s.l)

	// wait waits with a context. One call of its methods releases the lock and lets another user
	// have it: the call that comes after skipped others. If ends, the calls count once the context
	// has ended, otherwise from the beginning. wait reports whether there were so many calls.
	wait := func(skipped int, ends bool) (called bool) {
		holder.mustLock(s.x)
		parent, cancel := context.WithCancel(s.ctx)
		defer cancel()
		release := func() *call { return holder.start(func(c *call) { c.err = s.x.UnlockContext(s.ctx) }) }
		asked, calls := &call{done: make(chan struct{})}, 0
		ctx := &asking{Context: parent, f: func() bool {
			if calls++; calls <= skipped {
				return true
			}
			defer close(asked.done)
			if released := release(); passes() {
				<-released.done
				asked.err = released.err
			}
			return false
		}}
		met := asked.done
		if ends {
			met = nil
		} else {
			ctx.refill(skipped + 1)
		}
		waiter := a.start(func(c *call) {
			if c.err = s.l.LockContext(ctx); c.err == nil {
				c.ok, c.err = true, s.l.UnlockContext(s.ctx)
			}
		})
		s.mustWaitUnless(met, waiter, s.l, 1)
		if ends {
			ctx.refill(skipped + 1)
			cancel()
			s.await(waiter, "LockContext under a context that has ended")
		}
		called = ctx.refill(0) == 0
		if !called { // the lock has called fewer methods
			select {
			case <-waiter.done:
				if !ends {
					s.Fatalf("LockContext returned (error %v) although another one holds the lock", waiter.err)
				}
			default:
			}
			asked = release()
		}
		s.await(asked, "UnlockContext")
		s.await(waiter, "LockContext")
		require.NoError(s, asked.err, "UnlockContext")
		switch {
		case waiter.ok: // with ends, the grant met the end
			require.NoError(s, waiter.err, "UnlockContext")
		case ends:
			require.ErrorIs(s, waiter.err, context.Canceled, "LockContext")
		default:
			require.NoError(s, waiter.err, "LockContext")
		}
		s.mustBeFree("each holder has released it")
		return called
	}
	for skipped := 0; skipped < 8 && !s.Failed() && wait(skipped, false); skipped++ { // who spins calls ever more
	}
	// Which method the lock calls first once the context has ended depends on the lock: the first
	// of them may be called by a goroutine of package context.
	for skipped := 0; skipped < 3 && !s.Failed(); skipped++ {
		wait(skipped, true)
	}
}

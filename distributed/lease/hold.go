package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
)

// hold is a grant in the hands of one owner.
type hold struct {
	c        *Client
	g        *grant
	released atomic.Bool
}

var _ locks.Hold = (*hold)(nil)

// taken returns the hold of the owner that took g.
func (c *Client) taken(g *grant) *hold {
	g.first.c, g.first.g = c, g
	return &g.first
}

// Lost returns a channel that is closed when the hold is lost.
func (h *hold) Lost() <-chan struct{} { return h.g.lostChan() }

// Err compares the end of the hold with the clock. On Linux, a suspension of the machine counts.
func (h *hold) Err() error {
	if h.released.Load() {
		return locks.ErrNotHeld
	}
	return h.g.err()
}

// Token returns the fencing token, or 0 if the store has none.
func (h *hold) Token() uint64 { return h.g.token }

// Deadline returns when the hold ends unless it is prolonged, by the clock of time.Now.
func (h *hold) Deadline() (time.Time, bool) {
	return h.g.end().Add(-h.c.suspended(time.Now())), true
}

// Extend makes the hold last for d from now, at least 1ms. It waits for the store until ctx or
// the hold ends.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	const op = "extend"
	fail := func(err error) error { return h.c.fail(ctx, op, h.g.id.Name, err) }
	if err := check(ctx); err != nil {
		return fail(err)
	}
	if d < time.Millisecond { // a number without a unit must not end the hold
		return fail(fmt.Errorf("extension by %v, at least 1ms is needed", d))
	}
	if h.Err() != nil {
		return fail(locks.ErrLost)
	}
	d = h.c.longest(d)
	for range extensions {
		whole, err := h.extend(ctx, d)
		h.c.sched.update(h.g)
		if err != nil {
			return fail(err)
		}
		if whole {
			break
		}
	}
	return nil
}

// extensions is how often an extension is sent that a renewal may have overtaken.
const extensions = 3

// extend prolongs the hold, and reports whether it surely lasts for d.
func (h *hold) extend(ctx context.Context, d time.Duration) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.g.end().Sub(h.c.now()))
	defer cancel()
	p := h.g.request(d)
	h.c.sched.sooner(h.g)
	ok, err := h.c.store.Renew(ctx, []HoldID{h.g.id}, d)
	switch {
	case err != nil:
		h.g.unanswered(p)
		if h.Err() != nil {
			err = fmt.Errorf("%w: %w", locks.ErrLost, err)
		}
		return false, err
	case len(ok) != 1 || !ok[0]:
		h.c.lost(h.g, nil)
		return false, locks.ErrLost
	case !h.g.answered(p) || h.released.Load():
		return false, locks.ErrLost
	}
	return p.least == d, nil
}

// lost makes g lost, and no longer renewed.
func (c *Client) lost(g *grant, cause error) {
	c.sched.remove(g)
	if g.lose(cause) && c.log != nil {
		c.log.Warn("lock lost", "lock", g.id.Name, "acquisition", g.id.Acquisition)
	}
	c.ended(g)
}

// notified makes the grant of id lost, of whose end the store has learned by itself.
func (c *Client) notified(id HoldID, cause error) {
	if g := c.sched.holder(id.Acquisition, cause); g != nil && g.id == id {
		c.lost(g, cause)
	}
}

// ended tells a [Session] that g is lost, if it is.
func (c *Client) ended(g *grant) {
	if c.session == nil {
		return
	}
	g.mu.Lock()
	first := g.cause != nil && !g.told
	g.told = g.told || first
	g.mu.Unlock()
	if first {
		c.session.Lost(g.id)
	}
}

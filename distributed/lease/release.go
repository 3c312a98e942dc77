package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
)

// unlock releases one hold of o, the owner that has passed e's queue.
func (c *Client) unlock(ctx context.Context, e *entry, o locks.Owner) error {
	e.mu.Lock()
	h := e.holdOf(o)
	if h == nil { // another goroutine of the owner is about to get it, or has just released it
		e.mu.Unlock()
		return locks.ErrNotHeld
	}
	now := c.now()
	err := h.g.errAt(now)
	if e.depth > 1 {
		_ = e.queue.UnlockContext(ctx) // before another goroutine can see the last hold
		user := e.fewer()
		e.mu.Unlock()
		if user {
			c.unuse(e)
		}
		return err
	}
	defer c.unuse(e)
	e.fewer()
	h.released.Store(true)
	e.hold = nil
	switch {
	case err != nil:
		e.grant = nil
		e.mu.Unlock()
	case c.passes(e, h.g, now):
		e.mu.Unlock()
		_ = e.queue.UnlockContext(ctx)
		return c.collect(ctx, e)
	default:
		e.grant, e.busy = nil, true
		e.mu.Unlock()
		var yield time.Duration
		yield, err = c.free(h.g)
		e.mu.Lock()
		e.handoff.givenBack(c.now(), yield, e.queue.HasQueued())
		e.settled()
		e.mu.Unlock()
	}
	_ = e.queue.UnlockContext(ctx)
	return err
}

// passes reports whether g goes to the next local waiter. e.mu is held.
func (c *Client) passes(e *entry, g *grant, now time.Time) bool {
	if !e.queue.HasQueued() || c.open.Err() != nil {
		return false
	}
	switch e.handoff.decide(g, c.handoffs, c.prober != nil, now) {
	case pass:
		return true
	case probe:
		if !c.begin() {
			return false
		}
		go c.probe(e, g)
		return true
	}
	return false
}

// probe asks the store whether others wait for g's lock. It ends a job.
func (c *Client) probe(e *entry, g *grant) {
	defer c.done()
	others, err := c.prober.Contended(c.life, g.id.Name)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handoff.probed(e.grant == g, err == nil && !others)
}

// backOut undoes the passing of e's queue by an acquisition that did not get the store's lock.
func (c *Client) backOut(ctx context.Context, e *entry) {
	e.mu.Lock()
	user := e.fewer()
	if h := e.hold; e.depth == 0 && h != nil {
		// Another goroutine of the owner has got the lock since, and has unlocked it as one of
		// two holds. So the last hold is released here. Or the hold is lost.
		h.released.Store(true)
		e.hold, e.grant = nil, nil
		if h.g.err() == nil {
			e.busy = true
			c.keep(e)
			c.spawn(func() {
				defer c.unuse(e)
				c.free(h.g)
				e.finish()
			})
		}
	}
	e.mu.Unlock()
	_ = e.queue.UnlockContext(ctx)
	c.collect(ctx, e)
	if user {
		c.unuse(e)
	}
}

// collect releases a lock that was passed to a local waiter that has gone away.
func (c *Client) collect(ctx context.Context, e *entry) error {
	e.mu.Lock()
	nothing := e.grant == nil
	e.mu.Unlock()
	if nothing || e.queue.IsLocked() {
		return nil // the owner that has passed the queue looks after it
	}
	ctx = context.WithoutCancel(ctx)
	if ok, err := e.queue.TryLockContext(ctx); !ok {
		return err
	}
	defer func() { _ = e.queue.UnlockContext(ctx) }()
	e.mu.Lock()
	g := e.grant
	if g == nil || e.hold != nil || e.busy {
		e.mu.Unlock()
		return nil
	}
	e.grant, e.busy = nil, true
	e.mu.Unlock()
	defer e.finish()
	_, err := c.free(g)
	return err
}

// free releases g to the store. It returns for how long others should have the opportunity to
// acquire the lock before a local owner asks again. The error matches locks.ErrLost if g was
// lost, or if the store does not say that it was held until now. Close waits for that.
func (c *Client) free(g *grant) (yield time.Duration, err error) {
	if c.begin() {
		defer c.done()
	}
	c.sched.remove(g)
	if !g.retire() {
		c.ended(g)
		return 0, g.err()
	}
	return c.giveBack(g)
}

// released is the store's answer to one release.
type released struct {
	Released
	err error
}

// giveBack has the store release g, and repeats the request until it is answered, but not for
// longer than the release timeout or g's time. What is left of that is tried in the background.
func (c *Client) giveBack(g *grant) (yield time.Duration, err error) {
	if !g.doubt.IsZero() {
		defer c.sweep(sweeping{id: g.id, queue: c.queue, until: g.doubt, late: true})
	}
	began := time.Now()
	limit := min(c.release, g.end().Sub(c.now()))
	pause := 5 * time.Millisecond
	var last error
	for try := 1; ; try++ {
		sent := time.Now()
		r, answered := c.releaseOnce(g.id, sent, limit-sent.Sub(began), try > 1)
		switch {
		case !answered && last == nil:
			return 0, c.giveUp(g, fmt.Errorf("no answer within %v", limit))
		case !answered:
			return 0, c.giveUp(g, last)
		case r.err == nil && !r.Held && try == 1:
			return 0, locks.ErrLost
		case r.err == nil: // if it was not held, an earlier request has released it
			return yieldFor(r.Released, time.Since(sent)), nil
		case !transient(r.err):
			return 0, lostBy(r.err)
		case time.Since(began)+pause > limit:
			return 0, c.giveUp(g, r.err)
		}
		select {
		case <-time.After(pause):
		case <-c.life.Done():
			return 0, lostBy(r.err)
		}
		last, pause = r.err, min(2*pause, 250*time.Millisecond)
	}
}

// releaseOnce sends one request to release id. A request that ignores its context is not awaited
// for longer than limit: then there is no answer.
//
// The first request needs no timer of its own. Its context ends after half of the release timeout
// at most.
func (c *Client) releaseOnce(
	id HoldID, sent time.Time, limit time.Duration, again bool) (r released, answered bool) {
	p := c.newRelease()
	p.ctx, p.id = c.briefly(sent), id
	ctx := p.ctx
	c.mu.Lock()
	c.jobs++
	c.mu.Unlock()
	go p.send()
	if !again {
		select {
		case r := <-p.answers:
			p.done()
			return r, true
		case <-ctx.Done():
		}
	}
	timer := time.NewTimer(limit - time.Since(sent))
	defer timer.Stop()
	select {
	case r := <-p.answers:
		p.done()
		return r, true
	case <-timer.C:
		return released{}, false
	}
}

// release is one request to release id. It is used again once its answer has been read.
type release struct {
	c       *Client
	ctx     context.Context
	id      HoldID
	answers chan released
	send    func() // sends the request and the answer, and ends a job
}

// newRelease returns a request of c that has no answer yet.
func (c *Client) newRelease() *release {
	if p, ok := c.releases.Get().(*release); ok {
		return p
	}
	p := &release{c: c, answers: make(chan released, 1)}
	p.send = func() {
		defer c.done()
		r, err := c.store.Release(p.ctx, p.id)
		p.answers <- released{r, err}
	}
	return p
}

// done lets c use p again. Its answer has been read.
func (p *release) done() {
	p.ctx, p.id = nil, HoldID{}
	p.c.releases.Put(p)
}

// giveUp leaves the release of g to the background, and returns the error of its caller.
func (c *Client) giveUp(g *grant, err error) error {
	if c.log != nil {
		c.log.Warn("lock not released yet: it ends with its lease",
			"lock", g.id.Name, "acquisition", g.id.Acquisition, "error", err)
	}
	c.sweep(sweeping{id: g.id, until: g.end()})
	return lostBy(err)
}

// lostBy returns the error of a hold that may have ended before its release, because of err.
func lostBy(err error) error {
	if errors.Is(err, locks.ErrLost) {
		return err
	}
	return fmt.Errorf("%w before its release was confirmed: %w", locks.ErrLost, err)
}

// yieldFor returns for how long others should have the opportunity to acquire a lock, whose
// release took the time trip.
func yieldFor(r Released, trip time.Duration) time.Duration {
	if !r.Awaited {
		return 0
	}
	return min(max(tripsOfHandOver*trip, time.Millisecond), 50*time.Millisecond)
}

// briefly returns a context for a quarter of the release timeout from now, or up to twice that:
// one for all requests of such a time. A request without an answer leaves time to repeat it.
func (c *Client) briefly(now time.Time) context.Context {
	d := max(c.release/4, time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.brief == nil || c.briefEnd.Sub(now) < d {
		c.briefEnd = now.Add(2 * d)
		ctx, cancel := context.WithDeadline(c.life, c.briefEnd)
		context.AfterFunc(ctx, cancel) // at its time, or with the client
		c.brief = ctx
	}
	return c.brief
}

// abandon makes g lost because the client is closed, and reports whether it was held until then.
// The caller has the store release it.
func (c *Client) abandon(g *grant) bool {
	c.sched.remove(g)
	if !g.lose(locks.ErrClosed) {
		c.ended(g)
		return false
	}
	return true
}

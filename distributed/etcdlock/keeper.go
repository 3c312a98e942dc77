package etcdlock

import (
	"context"
	"time"
)

// rouse has the keeper look at t, or before.
func (c *core) rouse(t time.Time) {
	c.keeper.Lock()
	defer c.keeper.Unlock()
	if !c.next.IsZero() && !t.Before(c.next) {
		return
	}
	c.next = t
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// keep looks after the sessions. It keeps alive those that wait, begins to watch the keys of those that hold, and forgets those
// whose time is over. Those that hold are kept alive by the engine.
func (c *core) keep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.keeper.Lock()
		next := c.next
		c.keeper.Unlock()
		switch {
		case next.IsZero():
			timer.Stop()
		default:
			timer.Reset(max(time.Until(next), 0))
		}
		select {
		case <-c.wake:
			continue
		case <-c.life.Done():
			return
		case <-timer.C:
		}
		c.keeper.Lock()
		c.next = time.Time{} // whatever is due from now on is said anew, or seen by look
		c.keeper.Unlock()
		if next := c.look(); !next.IsZero() {
			if rest := time.Now().Add(pace); next.Before(rest) {
				next = rest
			}
			c.rouse(next)
		}
	}
}

// look does what is due, and returns when something will be; zero: never.
func (c *core) look() (next time.Time) {
	now := time.Now()
	due := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	var renew, watch, over []*session
	c.mu.Lock()
	for _, x := range c.sessions {
		if x.master != nil {
			continue
		}
		x.mu.Lock()
		end := x.since.Add(x.ttl)
		switch {
		case !now.Before(end):
			over = append(over, x)
			delete(c.sessions, x.owner)
		case x.state != waiting && x.state != holding:
			due(end)
		case now.Before(x.next):
			due(x.next)
		case x.state == waiting:
			renew = append(renew, x)
			x.next = now.Add(x.ttl / 3)
			due(x.next)
		default:
			watch = append(watch, x)
			x.next = end
			due(end)
		}
		x.mu.Unlock()
	}
	c.mu.Unlock()
	for _, x := range over {
		x.die()
		x.finish()
		c.dropReader(x)
	}
	for len(renew) > 0 {
		n := min(len(renew), batch)
		xs := renew[:n]
		renew = renew[n:]
		c.spawn(func() { c.keepWaiting(xs) })
	}
	for _, x := range watch {
		c.spawn(func() { x.watchOwn(c.life) }) // if it fails, the renewal will tell
	}
	return next
}

// keepWaiting keeps the places of waiters.
func (c *core) keepWaiting(xs []*session) {
	ctx, cancel := context.WithTimeout(c.life, xs[0].term())
	defer cancel()
	states, _ := c.renew(ctx, xs)
	for i, x := range xs {
		if states[i] == unknown {
			x.mu.Lock()
			x.next = time.Now().Add(max(x.ttl/30, pace))
			c.rouse(x.next)
			x.mu.Unlock()
		}
	}
}

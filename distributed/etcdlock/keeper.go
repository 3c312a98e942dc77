package etcdlock

import (
	"context"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// wakeKeeper makes the keeper look at the time t, by lease.Now, or before.
func (c *core) wakeKeeper(t time.Time) {
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

// keep runs the keeper. It keeps waiting sessions alive, begins to watch the keys of holding
// ones, and ends those whose time is over. The engine keeps holding ones alive.
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
			timer.Reset(max(next.Sub(lease.Now()), 0))
		}
		select {
		case <-c.wake:
			continue
		case <-c.life.Done():
			return
		case <-timer.C:
		}
		c.keeper.Lock()
		c.next = time.Time{} // what is due from now on sets it anew, or is seen by look
		c.keeper.Unlock()
		if next := c.look(); !next.IsZero() {
			if rest := lease.Now().Add(pace); next.Before(rest) {
				next = rest
			}
			c.wakeKeeper(next)
		}
	}
}

// look does what is due, and returns when something will be; zero: never.
func (c *core) look() (next time.Time) {
	now := lease.Now()
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
			delete(c.sessions, x.acquisition)
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
			x.next = lease.Now().Add(max(x.ttl/30, pace))
			c.wakeKeeper(x.next)
			x.mu.Unlock()
		}
	}
}

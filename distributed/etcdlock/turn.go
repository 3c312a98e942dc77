package etcdlock

import (
	"context"
	"fmt"
)

// turn puts the requests for one acquisition in order. Two requests may be under way: package
// lease repeats a request whose reply was lost, and the first request may arrive late. The
// requests are carried out one after the other, so each continues from the state that the request
// before it has left:
//
//	the request before        the next request
//	holds, or has a place     finds its key, and puts no other
//	was refused               finds nothing, or a key that is given up, and asks anew
//	ended without an answer   gives that key up, and asks anew
//
// A refused request gives up only the place that it has taken itself. A release waits for no
// turn: it ends the place. From then on requests take no place, until no request is under way any
// more.
type turn struct {
	taken chan struct{} // full while a request has its turn

	// core.mu guards the fields below.
	users int  // requests that have their turn, or wait for it
	over  bool // the acquisition was released: its requests take no place any more
}

// enter waits for the turn of a request for an acquisition, until ctx ends. The request calls leave
// at its end. After an error the outcome is unknown, because another request is under way.
func (c *core) enter(ctx context.Context, acquisition string) (leave func(), err error) {
	c.mu.Lock()
	t := c.turns[acquisition]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		c.turns[acquisition] = t
	}
	t.users++
	c.mu.Unlock()
	gone := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(c.turns, acquisition)
		}
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, fmt.Errorf("another request for the same acquisition is under way: %w", ctx.Err())
	}
}

// finish says that an acquisition was released, to its requests that are under way.
func (c *core) finish(acquisition string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.turns[acquisition]; t != nil {
		t.over = true
	}
}

// finished reports whether an acquisition was released since its oldest request under way began.
// c.mu is held.
func (c *core) finished(acquisition string) bool {
	t := c.turns[acquisition]
	return t != nil && t.over
}

package lease

import "time"

// Session is what a [Store] has in addition whose locks last as long as the store's session with its server: for how long
// that is, the
// server decides, and a lock does not end by itself when its hold does.
type Session interface {
	// Term returns for how long the session lasts without a sign of life. A hold that is taken or extended lasts no longer,
	// and as long if it is renewed: [WithLease] counts for nothing.
	Term() time.Duration

	// Lost is called once for each hold that was lost, after its holder was told, for the store to free what the session may
	// keep. It
	// may be called from any goroutine, and must not wait for anything.
	Lost(r HoldID)
}

// term returns for how long a hold lasts that is renewed, if it is taken now.
func (c *Client) term() time.Duration {
	if c.session != nil {
		return c.session.Term()
	}
	return c.lease
}

// longest returns how much of d a hold can have.
func (c *Client) longest(d time.Duration) time.Duration {
	if c.session != nil {
		return min(d, c.session.Term())
	}
	return d
}

// ended tells a [Session] that g, which is lost, is so.
func (c *Client) ended(g *grant) {
	if c.session == nil {
		return
	}
	g.mu.Lock()
	first := g.cause != nil && !g.told
	g.told = g.told || first
	g.mu.Unlock()
	if first {
		c.session.Lost(g.ref)
	}
}

package lease

import (
	"slices"
	"time"
)

// pending is a request that gives a grant another end, from when it is sent until it is answered.
//
// Requests overtake each other, and one that is not answered may be carried out at any time. So a grant is valid, when a request for the
// time d is sent, at most for d from then on: it may be the last one that the store sees. And when one is answered that was sent at t, it
// is so for the shortest of its own time and those of all requests that were on their way together with it, or of which nothing is
// known, from t on: whichever of them is carried out last is so after t.
type pending struct {
	sent  time.Time
	d     time.Duration
	least time.Duration // of d and those of the others
}

// request notes that a request is about to be sent that makes g last for d.
func (g *grant) request(c *Client, d time.Duration) *pending {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requestLocked(c, &pending{sent: time.Now(), d: d, least: d})
}

// renewal is request for the next renewal, or nil if g lasts for longer than that anyway.
func (g *grant) renewal(c *Client) *pending {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &pending{sent: time.Now(), d: g.lease, least: g.lease}
	if g.until.After(p.until(c, p.d)) {
		return nil
	}
	return g.requestLocked(c, p)
}

// requestLocked is request, with g.mu held.
func (g *grant) requestLocked(c *Client, p *pending) *pending {
	d := p.d
	if p.sent.Before(g.late) {
		p.least = min(d, g.unknown)
	}
	for _, other := range g.requests {
		other.least = min(other.least, d)
		p.least = min(p.least, other.d)
	}
	g.requests = append(g.requests, p)
	if until := p.until(c, d); until.Before(g.until) {
		g.until = until
	}
	return p
}

func (p *pending) until(c *Client, d time.Duration) time.Time { return p.sent.Add(d - c.marginOf(d)) }

// answered notes that p was carried out, and reports whether g is valid still.
func (g *grant) answered(c *Client, p *pending) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(p)
	if !g.gone && !time.Now().Before(g.until) {
		g.loseLocked(nil)
	}
	if until := p.until(c, p.least); until.After(g.until) {
		g.until = until
	}
	return !g.gone
}

// unanswered notes that nothing is known of p, nor will be.
func (g *grant) unanswered(p *pending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(p)
	now := time.Now()
	if !now.Before(g.late) || p.d < g.unknown {
		g.unknown = p.d
	}
	g.late = now.Add(latest)
}

// forget ends that p is on its way. g.mu is held.
func (g *grant) forget(p *pending) {
	if i := slices.Index(g.requests, p); i >= 0 {
		g.requests = slices.Delete(g.requests, i, i+1)
	}
}

package lease

import (
	"reflect"
	"strings"
	"time"

	"github.com/jucgo/locks/distributed/internal/identity"
	"github.com/jucgo/locks/internal/leases"
)

// live returns the locks that this client holds, or asks its store for, and the locks with a local
// queue. It does not ask the store.
func (c *Client) live() []leases.Lease {
	queues := c.queues.list("")
	now := c.now()
	shift := c.suspended(now)
	all := make([]leases.Lease, 0, len(queues))
	for _, q := range queues {
		name, _, _ := strings.Cut(q.name, "\x00") // in the key of a Shared lock, the owner follows
		l := leases.Lease{
			Store: c.prefix, Name: name, Owner: int64(q.turn.Owner()),
			Queue: reflect.ValueOf(q.turn).Pointer(),
		}
		q.mu.Lock()
		g := q.grant
		l.Asks, l.Asked = q.asks != "", identity.Began(q.asks)
		q.mu.Unlock()
		if g != nil {
			g.describe(&l, now, shift)
		}
		all = append(all, l)
	}
	return all
}

// describe adds the state of the hold to l.
func (g *grant) describe(l *leases.Lease, now time.Time, shift time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire(now)
	l.Held, l.Lost = !g.gone, g.gone && g.cause != nil
	if l.Lost {
		l.Cause = g.cause.Error()
	}
	l.Since, l.Left = g.taken.Add(-shift), max(g.until.Sub(now), 0)
	l.TTL, l.Fixed, l.Token, l.Unanswered = g.ttl, g.fixed, g.token, g.silent
	if !g.renewed.IsZero() {
		l.Renewed = g.renewed.Add(-shift)
	}
}

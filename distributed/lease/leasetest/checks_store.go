package leasetest

import (
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// storeChecks call the methods of Stores directly.
var storeChecks = []check{
	{"OneHolder", hasStore, oneHolder},
}

// acquire asks once.
func (c *client) acquire(name, acquisition string, d time.Duration) lease.Reply {
	c.Helper()
	reply, err := c.requests.Acquire(c.ctx, name, acquisition, d)
	if err != nil {
		c.broken("Acquire succeeds on a healthy store: "+err.Error(), c)
	}
	return reply
}

func oneHolder(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine, other := a.acquisition(), b.acquisition()
	if !a.acquire(name, mine, time.Minute).Held {
		s.broken("a free lock is given to the first client that asks", a)
	}
	if b.acquire(name, other, time.Minute).Held {
		s.broken("a held lock is given to no other client", a, b)
	}
}

package etcdlock

import (
	"context"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// ReleaseBehindARenewal releases a hold whose key a renewal of the session deletes when the release
// has given the place up, but has sent nothing yet.
func ReleaseBehindARenewal(ctx context.Context, c *Client, id driver.HoldID) (held bool, err error) {
	p := c.core.find(id.Name, id.Acquisition)
	c.core.leave(p)
	c.core.give(ctx, p)
	return c.core.give(ctx, p)
}

// SemaphoreLock returns the semaphore called name, of one permit, as a lock.
func (c *Client) SemaphoreLock(name string) *lease.Mutex {
	return c.mutex(counting, name, c.semaphore(name), nil)
}

const (
	Brief   = brief
	Expired = expired
)

var (
	Refusals     = refusals
	TextRefusals = textRefusals
	ByCode       = byCode
	ClassOf      = classOf
)

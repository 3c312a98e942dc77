package redislock

import (
	"context"
	"errors"
	"strings"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// A forced unlock publishes the acquisition of each holder, a space, and the lock's name:
//
//	locks_client:<client>   a channel; the client subscribes with its first hold
//
// A message alone ends no hold. The client then asks whether the acquisition holds the lock.

var errForced = errors.New("freed by ForceUnlock")

// force runs a script that frees the lock.
func (c *core) force(ctx context.Context, s *script, name, key, channel, readersKey string, message any) (bool, error) {
	m, err := c.mode(ctx)
	if err != nil {
		return false, err
	}
	args := newArgs(key, channel, readersKey, "", message)
	r, err := c.p.Eval(ctx, s, 3, m.publish(args))
	return c.forced(ctx, m, name, r, err)
}

// forced reads the reply of such a script, and tells the holders.
func (c *core) forced(ctx context.Context, m mode, name string, r any, err error) (bool, error) {
	holders, ok := r.([]any)
	if err == nil && !ok {
		err = replyError(r)
	}
	for _, h := range holders {
		text, _ := h.(string)
		acquisition := strings.TrimSuffix(text, writerSuffix)
		if client, _, ok := strings.Cut(acquisition, ":"); ok && len(client) == 36 {
			message := newArgs(clientKey(client), acquisition+" "+name)
			c.p.Eval(ctx, tell, 1, m.publish(message)) // otherwise the holder's renewal tells it
		}
	}
	return len(holders) > 0, err
}

// NotifyLoss is part of [driver.LossNotifier].
func (s *self) NotifyLoss(lost func(driver.HoldID, error)) { s.lost = lost }

// listen makes the client hear of forced unlocks.
func (s *self) listen(ctx context.Context, c *core, ask lookup) error {
	w := newWatch(func(_, message string) bool {
		var id driver.HoldID
		id.Acquisition, id.Name, _ = strings.Cut(message, " ")
		c.hub.wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.hub.life, lease.DefaultReleaseTimeout)
			defer cancel()
			if r, err := ask(ctx, driver.Request{HoldID: id}); err == nil && !r.Held {
				s.lost(id, errForced)
			}
		})
		return false
	})
	w.holder = true
	return c.attach(ctx, w, clientKey(s.client))
}

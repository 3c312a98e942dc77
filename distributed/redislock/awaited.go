package redislock

import (
	"context"

	"github.com/jucgo/locks/distributed/lease"
)

// subscribers replies with how many connections subscribe to a channel.
//
// KEYS lock; ARGV channel
var subscribers = newScript(`return redis.call('pubsub', 'numsub', ARGV[1])[2]`)

// awaited reports whether anybody waits for a message on channel, but for one at a gate of this process who has the
// lock by now. Who waits without a subscription is not seen. In a cluster no server knows the subscribers of all.
func (c *core) awaited(ctx context.Context, name, channel string) (bool, error) {
	if c.p.Cluster() || c.pubsub == Sharded || c.pubsub == Both {
		return true, nil
	}
	own, watched := c.hub.subscribed(channel)
	if watched { // by a lock of another kind
		return true, nil
	}
	r, err := c.p.Eval(ctx, subscribers, 1, []any{head - 1: nil, name, channel})
	if err != nil {
		return false, err
	}
	n, ok := r.(int64)
	if !ok {
		return false, unexpected(r)
	}
	return n > own, nil
}

var _ lease.ContentionProber = (*single)(nil)

func (s *single) Contended(ctx context.Context, name string) (bool, error) {
	return s.c.awaited(ctx, name, prefixed(s.channel, name))
}

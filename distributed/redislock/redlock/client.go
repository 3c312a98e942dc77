package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/goredis"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// Client gives locks by name that live on several independent Redis servers. It is a
// [locks.Provider]. It is safe for concurrent use. [Client.Close] ends it.
type Client struct {
	store *majority
	locks *lease.Client
}

var _ locks.Provider = (*Client)(nil)

// WithNodeTimeout sets how long [New]'s locks wait for one server. It should be much less than the
// lease. The default is a tenth of the lease, at least 100 milliseconds and at most a second.
// [redislock.New] ignores it.
func WithNodeTimeout(d time.Duration) redislock.Option {
	return func(o *redisport.Options) { o.NodeTimeout = d }
}

// WithRestore makes a renewal that a majority has confirmed create the lock on servers that lack
// it. A server lacks the lock after it came back empty, could not be reached, or served a rival
// that got no majority. Without WithRestore such a server lacks the lock until the next
// acquisition, and each further failure weakens the hold. With WithRestore, a lock that was deleted
// on a minority of the servers comes back. [redislock.New] ignores it.
func WithRestore() redislock.Option { return func(o *redisport.Options) { o.Restore = true } }

// New returns the locks on the servers of clients. Each server is an independent master. It must
// not have a replica, sentinel or cluster through which two servers could fail together, or a
// server could lose a lock. Five servers are usual, and three are enough. A lock survives the
// failure of any minority. The clients are set up as [redislock.New] says. New closes none of them.
//
// The options of package redislock have the same effect as there, except that
// [redislock.WithFairWait] is ignored. [WithNodeTimeout] and [WithRestore] are further options.
// [WithReplicas] is refused, because New does not count replicas.
func New(clients []redis.UniversalClient, opts ...redislock.Option) (*Client, error) {
	ports := make([]redisport.Port, len(clients))
	known := make(map[redis.UniversalClient]bool)
	for i, c := range clients {
		p, err := goredis.New(c)
		if err != nil {
			return nil, fmt.Errorf("redlock: server %d: %w", i, err)
		}
		if known[c] {
			return nil, fmt.Errorf("redlock: server %d is given twice", i)
		}
		known[c] = true
		ports[i] = p
	}
	var o redisport.Options
	for _, opt := range opts {
		opt(&o)
	}
	switch {
	case len(ports) == 0:
		return nil, errors.New("redlock: no servers")
	case o.NodeTimeout < 0:
		return nil, fmt.Errorf("redlock: node timeout of %v, at least 0 is needed", o.NodeTimeout)
	case o.Wrap != nil:
		return nil, errors.New("redlock: WithReplicas is refused, a majority of servers is asked instead")
	}
	nodes := make([]node, len(ports))
	for i, p := range ports {
		plain, err := redisport.NewPlain(p, &o)
		if err != nil {
			return nil, fmt.Errorf("redlock: %w", err)
		}
		nodes[i] = node{plain, p}
	}
	store := newMajority(nodes, &o)
	places := make([]string, len(ports))
	for i, p := range ports {
		places[i] = p.Place()
	}
	slices.Sort(places)
	first := []lease.Option{
		driver.WithErrorPrefix("redlock"), driver.WithPlace("redlock "+strings.Join(places, ", "), ""),
	}
	c, err := lease.New(store, append(first, o.Lease...)...)
	if err != nil {
		store.close(context.Background())
		return nil, err
	}
	return &Client{store, c}, nil
}

// Locker returns the lock called name. It is a [*lease.Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the lock called name. Its holds come without a fencing token.
func (c *Client) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	var bad error
	for _, node := range c.store.nodes { // a cluster refuses more names
		bad = cmp.Or(bad, node.Check(name))
	}
	opts = append([]lease.MutexOption{driver.WithRefusal(bad)}, opts...)
	return c.locks.Mutex(name, opts...)
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]. See
// [lease.Client.Close]. One script on each server frees a hundred locks. Close waits for servers
// that do not answer until ctx ends, and for [lease.DefaultReleaseTimeout] at most. It closes none
// of the clients that New was given. Only the first call does anything.
func (c *Client) Close(ctx context.Context) error {
	err := c.locks.Close(ctx)
	c.store.close(ctx)
	return err
}

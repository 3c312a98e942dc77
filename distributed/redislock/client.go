package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/goredis"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// Client gives locks by name that live on a Redis server or a cluster. It is a [locks.Provider].
// It is safe for concurrent use. [Client.Close] ends it. A Client must not be copied.
type Client struct {
	core  *core
	opts  redisport.Options
	kinds driver.Group[kind, *lease.Client]
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes its locks. Package redlock has further Options.
type Option func(*redisport.Options)

// WithTTL sets how long a hold of any lock of the client lasts without a renewal,
// [lease.DefaultLease] if not given. See [lease.WithTTL]. [lease.WithFixedTTL] is for a single
// lock.
func WithTTL(d time.Duration) Option { return WithLeaseOptions(lease.WithTTL(d)) }

// WithLabel sets the name of this process that [lease.Mutex.Inspect] returns, here and in other
// processes. The default is the name of the host and the process id. See [lease.WithLabel].
func WithLabel(label string) Option { return WithLeaseOptions(lease.WithLabel(label)) }

// WithLeaseOptions sets the rarer options of package lease, such as [lease.WithLogger] and
// [lease.WithRetry].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(o *redisport.Options) { o.Lease = append(o.Lease, opts...) }
}

// PubSub is the kind of channel that releases are published on. All clients of a lock must use the
// same kind, in Go and in Java. Otherwise they hear of each other's releases only when they ask
// again.
type PubSub int

const (
	// Auto is Sharded on a cluster with sharded channels, and otherwise Classic. Redisson does
	// the same since 3.22.0.
	Auto PubSub = iota
	// Classic uses PUBLISH, as Redisson does up to 3.21.
	Classic
	// Sharded uses SPUBLISH, which needs Redis 7. Only the servers of the lock's slot get the
	// messages.
	Sharded
	// Both uses both, for a cluster with clients of either kind. A server without SPUBLISH ignores
	// the sharded half.
	Both
)

// WithPubSub sets the kind of channel that releases are published on, [Auto] if not given.
func WithPubSub(p PubSub) Option { return func(o *redisport.Options) { o.PubSub = int(p) } }

// WithFairWait sets how long a fair lock keeps the place of a waiter that no longer asks, such as a
// waiter whose process has died. The time begins with the end of the holder's lease. The default is
// 30 seconds. It must be longer than the poll interval, [lease.WithPoll].
func WithFairWait(d time.Duration) Option { return func(o *redisport.Options) { o.FairWait = d } }

// New returns a Client of the server, the cluster, or the master behind sentinels that client is
// connected to. The Client uses client's connections, and opens one or more for subscriptions with
// its first hold or waiter. It never closes client. Close the Client before client.
//
// client never repeats a request that acquires or releases a lock, whatever its MaxRetries is. A
// ReadTimeout of at most a sixth of the lease, and ContextTimeoutEnabled, speed up the reaction
// to a failing network.
//
// A [redis.Ring] is refused, because it moves a lock to another server when one is down. The locks
// of a cluster need a [redis.ClusterClient] itself: requests of another client, or of a wrapper,
// fail. Use a hook instead of a wrapper.
//
// A hook of client must not keep a command, or its arguments, after it has returned.
//
// For rueidis instead of go-redis, see package onrueidis.
func New(client redis.UniversalClient, opts ...Option) (*Client, error) {
	p, err := goredis.New(client)
	if err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	c := &Client{opts: redisport.Options{FairWait: fairWait}}
	for _, o := range opts {
		o(&c.opts)
	}
	if c.core, err = newCore(p, &c.opts); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	if c.opts.FairWait < 10*time.Millisecond {
		return nil, fmt.Errorf("redislock: fair wait of %v, at least 10ms is needed", c.opts.FairWait)
	}
	if _, err := c.kind(plain); err != nil { // reports wrong options at once
		return nil, err
	}
	return c, nil
}

// kind is a kind of lock.
type kind int

const (
	plain kind = iota
	fenced
	simple
	fairly
	reading
	writing
	counting // permits, see permits.go
	expiring // permits of Redisson, see expirable.go
)

// kind returns the locks of a kind.
func (c *Client) kind(k kind) (*lease.Client, error) {
	return c.kinds.Client(k, func() (*lease.Client, error) {
		prefix := []lease.Option{driver.WithErrorPrefix("redislock"), driver.WithPlace(c.core.p.Place(), "")}
		if k == expiring { // which has no queue, and no acknowledgements
			return lease.New(expirable{c.core}, append(prefix, c.opts.Lease...)...)
		}
		s, opts := c.store(k)
		// The user's options follow, and so win.
		opts = append(append(opts, prefix...), c.opts.Lease...)
		if c.opts.Wrap == nil {
			return lease.New(s, opts...)
		}
		wrapped, err := c.opts.Wrap(s, c.core.p.ReplyTimeout())
		if err != nil {
			return nil, fmt.Errorf("redislock: %w", err)
		}
		return lease.New(wrapped, opts...)
	})
}

// store returns the store of a kind, with the options that are its defaults.
func (c *Client) store(k kind) (redisport.Store, []lease.Option) {
	switch k {
	case fenced:
		// Local hand-offs are off: the holders would share a token, and a late request of one
		// holder would look like a request of another.
		return withWaiters(newFenced(c.core)), []lease.Option{lease.WithMaxLocalHandoffs(0)}
	case simple:
		return withWaiters(newSimple(c.core)), nil
	case fairly:
		// A waiter asks often enough to keep its place. Local hand-offs are off, because they
		// overtake waiters of other processes.
		wait := c.opts.FairWait
		poll := lease.WithPoll(min(lease.DefaultPoll, wait/3))
		return newFair(c.core, wait), []lease.Option{poll, lease.WithMaxLocalHandoffs(0)}
	case reading:
		return withWaiters(newRead(c.core)), nil
	case writing:
		return withWaiters(newWrite(c.core)), nil
	case counting:
		return withWaiters(newPermits(c.core)), nil
	}
	return withWaiters(newPlain(c.core)), nil
}

func (c *Client) lock(k kind, name string, opts []lease.MutexOption) *lease.Mutex {
	lc, opts := c.lockOptions(k, name, opts)
	return lc.Mutex(name, opts...)
}

// lockOptions returns the locks of a kind, and opts with the reason why name is refused, if any.
func (c *Client) lockOptions(k kind, name string, opts []lease.MutexOption) (*lease.Client, []lease.MutexOption) {
	bad := checkName(name, c.core.p.Cluster())
	lc, err := c.kind(k)
	if err != nil {
		bad = err
		lc, _ = c.kind(plain)
	}
	return lc, append([]lease.MutexOption{driver.WithRefusal(bad)}, opts...)
}

// Locker returns the plain lock called name, Redisson's RLock. It is a [*lease.Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the plain lock called name, Redisson's RLock. Its holds come without a fencing
// token.
func (c *Client) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	return c.lock(plain, name, opts)
}

// FencedMutex returns the plain lock called name with fencing tokens, Redisson's RFencedLock. It
// excludes [Client.Mutex] of the same name, whose holders do not change the token. Each holder
// requests the lock from the server, and so gets its own token, unless [New] was given
// [WithLeaseOptions] with [lease.WithMaxLocalHandoffs].
func (c *Client) FencedMutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	return c.lock(fenced, name, opts)
}

// SimpleMutex returns the lock called name that is a string, as SET with NX and PX makes it. The
// lock excludes holders of other libraries that use SET in the same way. A lock of another kind
// under the same name returns [locks.ErrForeign], and the other way round.
func (c *Client) SimpleMutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	return c.lock(simple, name, opts)
}

// FairMutex returns the lock called name that waiters acquire in order of arrival, in whatever
// process: Redisson's RFairLock. TryLockContext acquires the lock only if nobody waits.
func (c *Client) FairMutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	return c.lock(fairly, name, opts)
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]. See
// [lease.Client.Close]. Permits of a [RedissonSemaphore] do not count as holds, and stay taken
// until they are released. Close does not close the client that New was given. Only the first call
// does anything.
func (c *Client) Close(ctx context.Context) error {
	first, err := c.kinds.Close(ctx)
	if first {
		c.core.close()
		limited, cancel := context.WithTimeout(ctx, lease.DefaultReleaseTimeout)
		defer cancel()
		c.core.jobs.Close(limited)
		c.core.hub.close(ctx)
	}
	return err
}

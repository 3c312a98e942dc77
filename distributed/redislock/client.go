package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// Client gives locks that live on a Redis server, or a cluster of them, by name. It is a
// [locks.Provider]. It is safe for concurrent use; [Client.Close] ends it.
type Client struct {
	core *core
	opts options

	mu     sync.Mutex
	kinds  map[kind]*lease.Client
	closed bool
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes a Client.
type Option func(*options)

type options struct {
	lease    []lease.Option
	pubsub   PubSub
	fairWait time.Duration
	node     time.Duration // of Redlock: for how long one server is waited for
	restore  bool          // of Redlock
	replicas int           // that have to acknowledge an acquisition
	sync     time.Duration // in which time
}

// check returns what is wrong with o.
func (o *options) check() error {
	switch {
	case o.pubsub < Auto || o.pubsub > Both:
		return fmt.Errorf("redislock: PubSub of %d", o.pubsub)
	case o.fairWait < 10*time.Millisecond:
		return fmt.Errorf("redislock: fair wait of %v", o.fairWait)
	case o.node < 0:
		return fmt.Errorf("redislock: node timeout of %v", o.node)
	case o.replicas < 0 || o.replicas > 0 && o.sync < time.Millisecond:
		return fmt.Errorf("redislock: acknowledgement by %d replicas in %v", o.replicas, o.sync)
	}
	return nil
}

// WithTTL sets how long a hold lasts without a renewal, [lease.DefaultLease] if not given. See
// [lease.WithTTL].
func WithTTL(d time.Duration) Option { return WithLeaseOptions(lease.WithTTL(d)) }

// WithLeaseOptions sets the rarer options of package lease, such as [lease.WithLogger] and
// [lease.WithRetry].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(o *options) { o.lease = append(o.lease, opts...) }
}

// PubSub says by which kind of channel a release is told, and waited for. All clients of a lock
// have to agree, also those in Java, or they hear of a release of the others only when they ask
// again.
type PubSub int

const (
	// Auto takes Sharded on a cluster that has it, and else Classic, like Redisson since 3.22.0.
	Auto PubSub = iota
	// Classic takes PUBLISH, like Redisson up to 3.21.
	Classic
	// Sharded takes SPUBLISH, which needs Redis 7: in a cluster, only the servers of the lock's
	// slot have work with it.
	Sharded
	// Both takes both, for a cluster with clients of either kind. A server that has no SPUBLISH
	// does without.
	Both
)

// WithPubSub sets by which kind of channel a release is told, [Auto] if not given.
func WithPubSub(p PubSub) Option { return func(o *options) { o.pubsub = p } }

// WithFairWait sets for how long beyond the lease a place in the queue of a fair lock is kept for
// a process that does not ask for the lock any more, because it died: 30 seconds if not given. It
// must be more than the poll interval, [lease.WithPoll].
func WithFairWait(d time.Duration) Option { return func(o *options) { o.fairWait = d } }

// New returns a Client of the server, the cluster, or the master behind sentinels, that client
// has. It uses client's connections, and one or more of its own for subscriptions, once somebody
// has waited. It never closes client, and has to be closed before client is.
//
// Requests that take or free a lock are never repeated by client, whatever its MaxRetries is. It
// is of use for the speed of reactions to a network that fails if its ReadTimeout is short, a
// sixth of the lease at most, and its ContextTimeoutEnabled set.
//
// A [redis.Ring] is refused: it moves a lock to another server when one is down.
//
// A hook of client must not keep a command, or its arguments, for longer than it runs.
//
// With rueidis instead of go-redis, take package onrueidis.
func New(client redis.UniversalClient, opts ...Option) (*Client, error) {
	p, err := newGoRedis(client)
	if err != nil {
		return nil, err
	}
	c, err := newClient(p, opts)
	if err != nil {
		return nil, err
	}
	if err := checkSync(client, &c.opts); err != nil {
		c.Close(context.Background())
		return nil, err
	}
	return c, nil
}

func init() {
	driver.NewClient = func(p driver.Port, opts any) (any, error) { return newClient(p, opts.([]Option)) }
	driver.NewRedlock = func(ports []driver.Port, opts any) (any, error) { return newRedlock(ports, opts.([]Option)) }
	driver.NewGate = func(p driver.Port) any { return &Gate{p} }
}

func newClient(p port, opts []Option) (*Client, error) {
	c := &Client{kinds: make(map[kind]*lease.Client), opts: options{fairWait: fairWait}}
	for _, o := range opts {
		o(&c.opts)
	}
	if err := c.opts.check(); err != nil {
		return nil, err
	}
	if c.opts.replicas > 0 {
		p = syncing{p, c.opts.replicas}
	}
	c.core = &core{p: p, hub: newHub(p), pubsub: c.opts.pubsub}
	if _, err := c.kind(plain); err != nil { // tells wrong options at once
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
)

// kind returns the locks of a kind.
func (c *Client) kind(k kind) (*lease.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lc := c.kinds[k]; lc != nil {
		return lc, nil
	}
	if c.closed {
		return nil, locks.ErrClosed
	}
	var s lease.Store
	switch k {
	case plain:
		s = withWaiters(newPlain(c.core))
	case fenced:
		s = withWaiters(newFenced(c.core))
	case simple:
		s = newSimple(c.core)
	case reading:
		s = readers{c.core}
	case writing:
		s = newWrite(c.core)
	}
	opts := c.opts.lease
	if k == fairly {
		wait := c.opts.fairWait
		s = &fair{c.core, wait}
		// Who waits asks often enough not to count as dead. And no turns for those here only
		// because they are here.
		opts = append([]lease.Option{lease.WithPoll(min(lease.DefaultPoll, wait/3)), lease.WithMaxLocalHandoffs(0)}, opts...)
	}
	if k == fenced {
		// Holders who leave the lock to each other have one token, and a late request of the one
		// passes for one of the other.
		opts = append([]lease.Option{lease.WithMaxLocalHandoffs(0)}, opts...)
	}
	lc, err := lease.New(withReplicas(s, &c.opts), opts...)
	if err != nil {
		return nil, err
	}
	if w, ok := s.(*waiting); ok {
		w.client = lc.ID()
	}
	c.kinds[k] = lc
	return lc, nil
}

// Mutex is a lock of one name and kind: a [lease.Mutex]. One whose name cannot be that of a lock
// cannot be taken; the error says why.
type Mutex struct {
	*lease.Mutex
	bad     error
	prepare func(ctx context.Context) (context.Context, error) // an acquisition of one half of a read-write lock
	acked   bool                                               // by replicas
}

var _ locks.Leased = (*Mutex)(nil)

// WithFixedTTL makes holds last for d and end then, see [lease.WithFixedTTL].
func WithFixedTTL(d time.Duration) lease.MutexOption { return lease.WithFixedTTL(d) }

func (c *Client) lock(k kind, name string, opts []lease.MutexOption) *Mutex {
	bad := checkName(name, c.core.p.Cluster())
	lc, err := c.kind(k)
	if err != nil {
		bad = err
		lc, _ = c.kind(plain)
	}
	return &Mutex{Mutex: lc.Mutex(name, opts...), bad: bad, acked: c.opts.replicas > 0}
}

// ready returns the context of an acquisition, or why it cannot be whatever the server says.
func (l *Mutex) ready(ctx context.Context) (context.Context, error) {
	switch {
	case l.bad != nil:
		return nil, l.bad
	case l.prepare == nil || ctx == nil || ctx.Err() != nil:
		return ctx, nil
	}
	return l.prepare(ctx)
}

// LockContext takes the lock, and waits for it until ctx ends; see [lease.Mutex.LockContext]. If
// there is something else under its name, the error matches [locks.ErrForeign].
func (l *Mutex) LockContext(ctx context.Context) error {
	ctx, err := l.ready(ctx)
	if err != nil {
		return err
	}
	if l.acked && ctx != nil {
		call := &attempt{wait: true}
		err := l.Mutex.LockContext(context.WithValue(ctx, attemptKey{}, call))
		if err != nil && call.lacking.Load() {
			err = fmt.Errorf("%w: %w", err, ErrNotReplicated)
		}
		return err
	}
	return l.Mutex.LockContext(ctx)
}

// TryLockContext takes the lock if nobody has it. It waits for the server's answer until ctx
// ends.
func (l *Mutex) TryLockContext(ctx context.Context) (bool, error) {
	ctx, err := l.ready(ctx)
	if err != nil {
		return false, err
	}
	if l.acked && ctx != nil {
		ctx = context.WithValue(ctx, attemptKey{}, new(attempt))
	}
	return l.Mutex.TryLockContext(ctx)
}

// ForceUnlock frees the lock, whoever holds it, here, elsewhere, or in Java, wakes those who wait
// as a release does, and reports whether anybody held it; see [lease.Mutex.ForceUnlock]. That of
// a read half frees the holds of all readers, and nothing while there is a writer; that of a
// write half frees the writer's, with what it reads. The token of a fenced lock goes on to
// increase. What is no lock of this kind stays as it is, with an error matching
// [locks.ErrForeign]: for plain, fair and fenced locks that is all but a hash with one field that
// is a count; for a simple lock all but a string with a time to live.
func (l *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	if l.bad != nil {
		return false, l.bad
	}
	return l.Mutex.ForceUnlock(ctx)
}

// Locker returns the plain lock called name, Redisson's RLock. It is a [*Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the plain lock called name, Redisson's RLock. It has no fencing token.
func (c *Client) Mutex(name string, opts ...lease.MutexOption) *Mutex {
	return c.lock(plain, name, opts)
}

// FencedMutex returns the plain lock called name with fencing tokens, Redisson's RFencedLock. It
// excludes [Client.Mutex] of the same name, whose holders leave the token as it is. Each holder
// asks the server, for a token of its own, also one that follows another in this process, unless
// [lease.WithMaxLocalHandoffs] is given.
func (c *Client) FencedMutex(name string, opts ...lease.MutexOption) *Mutex {
	return c.lock(fenced, name, opts)
}

// SimpleMutex returns the lock called name that is no more than a string, as SET with NX and PX
// makes it. It excludes holders by other libraries that do the same, but no lock of another kind:
// one finds the other's key, and returns [locks.ErrForeign].
func (c *Client) SimpleMutex(name string, opts ...lease.MutexOption) *Mutex {
	return c.lock(simple, name, opts)
}

// FairMutex returns the lock called name that is given away in the order in which it was asked
// for, by whatever process: Redisson's RFairLock. TryLockContext takes it only if nobody waits.
func (c *Client) FairMutex(name string, opts ...lease.MutexOption) *Mutex {
	return c.lock(fairly, name, opts)
}

// Close releases all holds, and has all who wait return [locks.ErrClosed]; see
// [lease.Client.Close]. It does not close the client that New was given. Only the first call does
// anything.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	kinds := c.kinds
	c.mu.Unlock()
	results := make(chan error, len(kinds))
	for _, lc := range kinds {
		go func() { results <- lc.Close(ctx) }()
	}
	var failed error
	for range kinds {
		failed = errors.Join(failed, <-results)
	}
	c.core.hub.close(ctx)
	return failed
}

package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// DefaultSessionTimeout is the session timeout that is asked for. The server has the last word.
const DefaultSessionTimeout = 30 * time.Second

// Client gives locks that live in ZooKeeper, by name. It is a [locks.Provider]. It has one session with the servers at a
// time. It is
// safe for concurrent use; [Client.Close] ends it.
type Client struct {
	core      *core
	namespace string
	margin    time.Duration // -1: a tenth of the session timeout
	lease     []lease.Option

	mu     sync.Mutex
	kinds  map[kind]*lease.Client
	stores map[kind]*store
	closed bool
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes a Client.
type Option func(*Client)

// WithSessionTimeout sets the session timeout that is asked for, [DefaultSessionTimeout] if not given: after it others get the
// locks of a process that died. The server moves it into its own limits, by default 2 to 20 of its ticks: 4 to 40 seconds.
func WithSessionTimeout(d time.Duration) Option { return func(c *Client) { c.core.timeout = d } }

// WithMargin sets by how much earlier than the server a holder regards its session as over, a tenth of the session timeout if not
// given, at most 2 seconds. In an ensemble it should be no less than half of a tick, for a server passes its
// clients' signs of life on to the leader twice a tick.
func WithMargin(d time.Duration) Option { return func(c *Client) { c.margin = d } }

// WithNamespace puts all locks below a path, as the namespace of a Curator client does: "app" or "/app". Curator's namespace
// has no slash.
func WithNamespace(path string) Option { return func(c *Client) { c.namespace = path } }

// WithAuth adds credentials, such as of the scheme "digest" with "user:password". They are not in any error or log.
func WithAuth(scheme string, secret []byte) Option {
	return func(c *Client) {
		c.core.auth = append(c.core.auth, credentials{scheme, append([]byte(nil), secret...)})
	}
}

// WithACL sets who may do what with the nodes that are made, everybody everything if not given. All clients of a lock have
// to be able to
// read and delete its nodes and to make some.
func WithACL(acl []zk.ACL) Option {
	return func(c *Client) { c.core.acl = append([]zk.ACL(nil), acl...) }
}

// WithLease sets what is the same for the locks of every store, such as [lease.WithMaxLocalHandoffs], [lease.WithPoll] and
// [lease.WithReleaseTimeout]. [lease.WithTTL] counts for nothing: a hold lasts as long as the session.
func WithLease(opts ...lease.Option) Option {
	return func(c *Client) { c.lease = append(c.lease, opts...) }
}

// WithState has f called with each change of [Client.State], one after the other. It is Held at the beginning.
func WithState(f func(State)) Option { return func(c *Client) { c.core.told = f } }

// WithLogger has losses logged, and what the ZooKeeper client has to say at level debug. Without it nothing is.
func WithLogger(l *slog.Logger) Option { return func(c *Client) { c.core.log = l } }

// New connects to one of servers, each "host:port" or "host", and returns when the session has begun. If ctx ends before, it
// returns
// an error that says why there is none.
func New(ctx context.Context, servers []string, opts ...Option) (*Client, error) {
	if ctx == nil {
		return nil, fmt.Errorf("zklock: New: %w", locks.ErrNilContext)
	}
	c := &Client{
		core: &core{
			servers: append([]string(nil), servers...),
			timeout: DefaultSessionTimeout,
			acl:     zk.WorldACL(zk.PermAll),
			change:  make(chan struct{}),
			beats:   make(chan struct{}, 1),
		},
		margin: -1,
		kinds:  make(map[kind]*lease.Client),
		stores: make(map[kind]*store),
	}
	for _, o := range opts {
		o(c)
	}
	switch {
	case len(servers) == 0:
		return nil, errors.New("zklock: no servers")
	case c.core.timeout < time.Millisecond || c.core.timeout > time.Hour:
		return nil, fmt.Errorf("zklock: session timeout of %v", c.core.timeout)
	}
	if c.namespace != "" {
		path, err := cleanName("", c.namespace)
		if err != nil {
			return nil, fmt.Errorf("zklock: namespace: %w", err)
		}
		c.namespace = path
	}
	c.core.order = strings.Join(slices.Sorted(slices.Values(c.core.servers)), ",")
	c.core.life, c.core.end = context.WithCancel(context.Background())
	c.core.spawn(c.core.run)
	if err := c.core.begin(ctx); err != nil {
		c.core.close(ctx)
		return nil, fmt.Errorf("zklock: New: %w", err)
	}
	if _, err := c.kind(mutexes); err != nil { // tells wrong options at once
		c.core.close(ctx)
		return nil, err
	}
	if c.core.told != nil {
		c.core.spawn(c.observe)
	}
	return c, nil
}

// begin waits for the first session.
func (c *core) begin(ctx context.Context) error {
	for {
		c.mu.Lock()
		s, failed, change := c.sess, c.failed, c.change
		c.mu.Unlock()
		switch {
		case s != nil:
			return nil
		case errors.Is(failed, zk.ErrAuthFailed):
			return failed
		}
		select {
		case <-change:
		case <-ctx.Done():
			return errors.Join(notConnected(ctx), failed)
		}
	}
}

func (c *Client) marginOf(timeout time.Duration) time.Duration {
	if c.margin >= 0 {
		return min(c.margin, timeout/2)
	}
	return min(timeout/10, 2*time.Second)
}

// kind is a kind of lock.
type kind int

const (
	mutexes kind = iota
	readers
	writers
	semaphores
	ephemerals
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
	var st *store
	switch k {
	case semaphores:
		m := new(semaphore)
		s, st = m, m.init(c.core)
	case ephemerals:
		e := new(ephemeral)
		s, st = e, e.init(c.core)
	default:
		q := &queue{recipe: map[kind]recipe{mutexes: mutex, readers: reading, writers: writing}[k]}
		s, st = q, q.init(c.core)
	}
	term := c.core.Term()
	opts := []lease.Option{lease.WithMaxLocalHandoffs(0)} // who waits here is no better than who waits elsewhere
	if c.core.log != nil {
		opts = append(opts, lease.WithLogger(c.core.log))
	}
	opts = append(opts, c.lease...)
	opts = append(opts, lease.WithTTL(term), lease.WithMargin(c.marginOf(term)))
	lc, err := lease.New(s, opts...)
	if err != nil {
		return nil, err
	}
	c.kinds[k], c.stores[k] = lc, st
	return lc, nil
}

// Close releases all holds, and has all who wait return [locks.ErrClosed]; see [lease.Client.Close]. It ends the session, with
// which all nodes go that are left, if a server can be reached; else they go with its timeout. Only the first call does anything.
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
	c.core.close(ctx)
	return failed
}

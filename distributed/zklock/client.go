package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// DefaultSessionTimeout is the session timeout that a client asks for. The server decides.
const DefaultSessionTimeout = 30 * time.Second

// Client gives locks on ZooKeeper by their names. It is a [locks.Provider]. It has one session
// with the servers at a time. It is safe for concurrent use. [Client.Close] ends it. A Client must
// not be copied.
type Client struct {
	core      *core
	namespace string
	margin    time.Duration // -1: a tenth of the session timeout
	lease     []lease.Option

	kinds  driver.Group[kind, *lease.Client]
	stores [kinds]*store
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes a Client.
type Option func(*Client)

// WithSessionTimeout sets the session timeout to ask for, [DefaultSessionTimeout] if not given.
// When the timeout is over, others get the locks of a process that died. The server moves the
// timeout into its own limits: by default 2 to 20 of its ticks, which is 4 to 40 seconds. Holds and
// extensions cannot be longer.
func WithSessionTimeout(d time.Duration) Option { return func(c *Client) { c.core.timeout = d } }

// WithMargin sets how much earlier than the server a holder regards its session as over. The
// default is a tenth of the session timeout, 2 seconds at most. In an ensemble the margin should be
// half of a tick or more: a server reports its clients to the leader twice a tick.
func WithMargin(d time.Duration) Option { return func(c *Client) { c.margin = d } }

// WithNamespace puts all locks below a path, as the namespace of a Curator client does: "app" or
// "/app". Curator writes its namespace without a slash.
func WithNamespace(path string) Option { return func(c *Client) { c.namespace = path } }

// WithDialer sets the function that connects to a server, [net.Dialer.DialContext] if not
// given. The DialContext of a [crypto/tls.Dialer] connects to the secure port of a server with
// TLS. The function gets one of the addresses that [New] got, with the name of the host. Its
// context ends when the attempt takes too long, and does not end the connection. The connection
// must support read deadlines.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *Client) { c.core.dialer = dial }
}

// WithAuth adds credentials, such as "user:password" of the scheme "digest". Errors and logs never
// contain the credentials. They cross the network unencrypted without TLS, so use TLS as well. SASL
// is not supported.
func WithAuth(scheme string, secret []byte) Option {
	return func(c *Client) {
		c.core.auth = append(c.core.auth, credentials{scheme, slices.Clone(secret)})
	}
}

// WithACL sets the access control list of all nodes that are made, everything for everyone if
// not given. All clients of a lock need the permissions to read, write and delete its nodes and
// to create others.
func WithACL(acl []zk.ACL) Option {
	return func(c *Client) { c.core.acl = slices.Clone(acl) }
}

// WithLabel sets the name of this process that [lease.Mutex.Inspect] returns, here and in other
// processes. The default is the name of the host and the process id. See [lease.WithLabel].
func WithLabel(label string) Option { return WithLeaseOptions(lease.WithLabel(label)) }

// WithLeaseOptions sets options that the locks of all stores have, such as
// [lease.WithMaxLocalHandoffs], [lease.WithPoll] and [lease.WithReleaseTimeout]. [lease.WithTTL] is
// ignored: use [WithSessionTimeout].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(c *Client) { c.lease = append(c.lease, opts...) }
}

// WithState makes each change of [Client.State] call f, one call at a time. The first state is
// Held.
func WithState(f func(State)) Option { return func(c *Client) { c.core.onState = f } }

// WithLogger makes the Client log losses, and messages of the ZooKeeper client at level debug. The
// default is not to log.
func WithLogger(l *slog.Logger) Option { return func(c *Client) { c.core.log = l } }

// New connects to one of servers, each "host:port" or "host", and returns when the session has
// begun. If ctx ends before, the error says why no session has begun.
func New(ctx context.Context, servers []string, opts ...Option) (*Client, error) {
	if ctx == nil {
		return nil, fmt.Errorf("zklock: connect: %w", locks.ErrNilContext)
	}
	c := &Client{
		core: &core{
			servers: slices.Clone(servers),
			timeout: DefaultSessionTimeout,
			acl:     zk.WorldACL(zk.PermAll),
			dialer:  new(net.Dialer).DialContext,
			change:  make(chan struct{}),
			beats:   adapter.NewBell(),
		},
		margin: -1,
	}
	for k := range kinds {
		c.stores[k] = newStore(c.core, k.recipe())
	}
	for _, o := range opts {
		o(c)
	}
	switch {
	case len(servers) == 0:
		return nil, errors.New("zklock: connect: no servers: at least one is needed")
	case c.core.timeout < time.Millisecond || c.core.timeout > time.Hour:
		return nil, fmt.Errorf("zklock: session timeout is %v: 1ms to 1h is allowed", c.core.timeout)
	case c.core.dialer == nil:
		return nil, errors.New("zklock: dialer is nil")
	}
	if c.namespace != "" {
		path, err := cleanName("", c.namespace)
		if err != nil {
			return nil, fmt.Errorf("zklock: namespace %q: %w", c.namespace, err)
		}
		c.namespace = path
	}
	c.core.clients = c.namespace + clientsDir
	c.core.order = strings.Join(slices.Sorted(slices.Values(c.core.servers)), ",")
	c.core.life, c.core.end = context.WithCancelCause(context.Background())
	c.core.jobs.Go(c.core.run)
	if err := c.core.begin(ctx); err != nil {
		c.core.close(ctx)
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	if _, err := c.kind(mutexes); err != nil { // reports wrong options at once
		c.core.close(ctx)
		return nil, err
	}
	if c.core.onState != nil {
		c.core.jobs.Go(c.observe)
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
			return fmt.Errorf("%w: %w", context.Cause(ctx), c.notConnected(ctx))
		}
	}
}

// marginOf returns the margin of a session.
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
	kinds // how many there are
)

func (k kind) recipe() recipe {
	switch k {
	case readers:
		return queue{readMode}
	case writers:
		return queue{writeMode}
	case semaphores:
		return semaphore{}
	case ephemerals:
		return ephemeral{}
	}
	return queue{mutexMode}
}

// kind returns the locks of a kind.
func (c *Client) kind(k kind) (*lease.Client, error) {
	return c.kinds.Client(k, func() (*lease.Client, error) {
		term := c.core.Term()
		opts := []lease.Option{
			driver.WithErrorPrefix("zklock"),
			driver.WithPlace(fmt.Sprintf("zookeeper %s %d", c.core.order, k), ""), // a name is a whole path
			// Local waiters do not go before remote waiters.
			lease.WithMaxLocalHandoffs(0),
		}
		if c.core.log != nil {
			opts = append(opts, lease.WithLogger(c.core.log))
		}
		opts = append(opts, c.lease...)
		opts = append(opts, lease.WithTTL(term), lease.WithMargin(c.marginOf(term)))
		return lease.New(c.stores[k], opts...)
	})
}

// Close releases all holds, and waiters return [locks.ErrClosed]: see [lease.Client.Close]. Close
// then ends the session, and with it all nodes that are left. If servers have said that this
// session and all earlier sessions of the client are over, no node is left, and Close returns nil.
// If no server can be reached, the session ends at its timeout. Only the first call has an effect.
func (c *Client) Close(ctx context.Context) error {
	first, err := c.kinds.Close(ctx)
	if first && c.core.close(ctx) {
		return nil // whatever the locks' own requests have come to
	}
	return err
}

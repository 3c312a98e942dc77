package consullock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Defaults of a [Client].
const (
	// DefaultTTL is how long a hold lasts without a renewal.
	DefaultTTL = 15 * time.Second
	// DefaultPrefix is the beginning of keys.
	DefaultPrefix = "locks/"
)

// longestDelay is the longest lock delay that Consul knows.
const longestDelay = time.Minute

// ErrSessionExpired reports that the session of the Client has ended in Consul. A holder gets it
// together with [locks.ErrLost]. A waiter never gets it.
var ErrSessionExpired = errors.New("session expired")

// Client gives locks that are keys of Consul, by name. It is a [locks.Provider]. It is safe for
// concurrent use. [Client.Close] ends it. A Client must not be copied.
type Client struct {
	store  *store
	lease  *lease.Client
	closed atomic.Bool
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes a Client.
type Option func(*options)

type options struct {
	prefix     string
	ttl, delay time.Duration
	delayed    bool // delay is given
	lease      []lease.Option
}

// WithTTL sets how long a hold lasts without a renewal, [DefaultTTL] if not given. The client's
// session lasts as long, too: holds and extensions cannot be longer. The client renews holds each
// third of the TTL. Consul frees the locks of a process that has died after twice the TTL and the
// lock delay. Its servers refuse a session shorter than their session_ttl_min, which is 10 seconds
// by default.
func WithTTL(d time.Duration) Option { return func(o *options) { o.ttl = d } }

// WithLockDelay sets for how long Consul refuses a lock whose session has ended while the lock was
// held, in whole milliseconds. The default is the TTL, or a minute, Consul's limit, if the TTL is
// longer. A delay as long as the TTL keeps the lock safe when a session ends before its time, see
// the documentation of the package. A shorter delay is for resources that compare tokens. The delay
// adds to the time after which the lock of a dead process is free. A release has no delay.
func WithLockDelay(d time.Duration) Option {
	return func(o *options) { o.delay, o.delayed = d, true }
}

// WithPrefix sets the beginning of all keys, [DefaultPrefix] if not given.
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// WithLabel sets the name of this process that [lease.Mutex.Inspect] returns, here and in other
// processes. The default is the name of the host and the process id. See [lease.WithLabel].
func WithLabel(label string) Option { return WithLeaseOptions(lease.WithLabel(label)) }

// WithLeaseOptions sets the rarer options of package lease, such as [lease.WithLogger]. Of these,
// [lease.WithTTL] has no effect: use [WithTTL].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(o *options) { o.lease = append(o.lease, opts...) }
}

// New returns a Client of the agent that client connects to. New sends no request. The Client runs
// one goroutine until it is closed, a second goroutine for its session, and one more for each
// waiter. The goroutines of the session and of waiters keep a connection to the agent each.
func New(client *api.Client, opts ...Option) (*Client, error) {
	o := options{prefix: DefaultPrefix, ttl: DefaultTTL}
	for _, f := range opts {
		f(&o)
	}
	if !o.delayed {
		o.delay = min(max(o.ttl, 0), longestDelay)
	}
	switch {
	case client == nil:
		return nil, errors.New("consullock: nil client")
	case o.delay < 0 || o.delay > longestDelay:
		return nil, fmt.Errorf("consullock: lock delay of %v, from 0 to %v is allowed", o.delay, longestDelay)
	case !isPrefix(o.prefix):
		return nil, fmt.Errorf("consullock: prefix %q: only letters, digits and - _ . ~ / are allowed, "+
			"and no empty part, . or .. between slashes", o.prefix)
	}
	s := newStore(client, o)
	// Each holder gets its own token, and local waiters do not go before waiters of other
	// processes.
	all := append([]lease.Option{
		lease.WithMaxLocalHandoffs(0), driver.WithPlace(placeOf(client), o.prefix),
	}, o.lease...)
	lc, err := lease.New(s, append(all, driver.WithErrorPrefix("consullock"), lease.WithTTL(o.ttl))...)
	if err != nil {
		s.stop()
		return nil, err
	}
	return &Client{store: s, lease: lc}, nil
}

// placeOf says where the locks of client are, without a login: its address, and the datacenter, the
// namespace and the partition if it has them. Consul's client has no method that returns them. If a
// version of the client renames a field, that part is missing.
func placeOf(client *api.Client) string {
	config := reflect.Indirect(reflect.ValueOf(client)).FieldByName("config")
	place := "consul"
	for _, name := range []string{"Address", "Datacenter", "Namespace", "Partition"} {
		if config.Kind() != reflect.Struct {
			break
		}
		if field := config.FieldByName(name); field.Kind() == reflect.String && field.Len() > 0 {
			text := field.String()
			place += " " + text[strings.LastIndexByte(text, '@')+1:]
		}
	}
	return place
}

// Key returns the key of the lock called name. A lock that
// [api.Client.LockKey] makes of this key is the same lock.
func (c *Client) Key(name string) string { return c.store.key(name) }

// Locker returns the lock called name. It is a [*lease.Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the lock called name.
func (c *Client) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	opts = append([]lease.MutexOption{driver.WithRefusal(c.store.checkName(name))}, opts...)
	return c.lease.Mutex(name, opts...)
}

// Names returns the names of the locks that match pattern, sorted. The result includes free locks,
// and locks of Consul's own lock below the prefix. The pattern has the syntax of [path.Match], and
// the empty pattern matches all names. Names reads all keys below the prefix in one request.
func (c *Client) Names(ctx context.Context, pattern string) ([]string, error) {
	return adapter.Names(ctx, "consullock: list names", pattern, func(add func(name string)) error {
		pairs, err := c.store.list(ctx)
		for _, pair := range pairs {
			if name, ok := nameOf(strings.TrimPrefix(pair.Key, c.store.prefix)); ok && pair.Flags == api.LockFlagValue {
				add(name)
			}
		}
		return err
	})
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]. See
// [lease.Client.Close]. A transaction releases 32 locks. Then Close ends the session: the end of a
// session with holds would delay their next owners. Only the first call does anything.
func (c *Client) Close(ctx context.Context) error {
	if c.closed.Swap(true) {
		return nil
	}
	err := c.lease.Close(ctx)
	c.store.close(ctx)
	return err
}

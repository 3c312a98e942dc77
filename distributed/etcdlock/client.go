package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// ErrSessionExpired reports that the etcd lease of the Client has ended, or that the key of a
// lock was deleted. A holder gets it together with [locks.ErrLost]. A waiter never gets it: it
// begins anew.
var ErrSessionExpired = errors.New("session expired")

// Client gives locks that live in an etcd cluster, by name. It is a [locks.Provider]. It is safe
// for concurrent use. [Client.Close] ends it. A Client must not be copied.
type Client struct {
	core   *core
	prefix string
	ttl    time.Duration
	lease  []lease.Option
	kinds  driver.Group[*kind, *lease.Client]
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes a Client.
type Option func(*Client)

// WithTTL sets how long a hold lasts without a renewal, [lease.DefaultLease] if not given. The
// client's session lasts as long, too: holds and extensions cannot be longer. etcd rounds the
// session up to whole seconds.
func WithTTL(d time.Duration) Option { return func(c *Client) { c.ttl = d } }

// WithLabel sets the name of this process that [lease.Mutex.Inspect] returns, here and in other
// processes. The default is the name of the host and the process id. See [lease.WithLabel].
func WithLabel(label string) Option { return WithLeaseOptions(lease.WithLabel(label)) }

// WithLeaseOptions sets the rarer options of package lease, such as [lease.WithLogger]. Of these,
// [lease.WithTTL] is ignored: use [WithTTL].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(c *Client) { c.lease = append(c.lease, opts...) }
}

// WithPrefix sets what all keys begin with, such as "/locks/". The default is the empty string.
// Clients with different prefixes have different locks, unless one prefix is the other prefix
// followed by the name of a lock and a slash.
func WithPrefix(prefix string) Option { return func(c *Client) { c.prefix = prefix } }

// New returns a Client of the cluster that client is connected to. The Client runs a few
// goroutines until it is closed. It never closes client. Close the Client before client.
//
// Set DialKeepAliveTime and DialKeepAliveTimeout of client. Without them, a client of a single
// member does not notice that its connection has died silently. While requests fail, the Client
// resets the back-off of client's connections, for all users of client.
func New(client *clientv3.Client, opts ...Option) (*Client, error) {
	if client == nil {
		return nil, errors.New("etcdlock: nil client")
	}
	c := &Client{ttl: lease.DefaultLease}
	for _, o := range opts {
		o(c)
	}
	if len(c.prefix) > maxName {
		return nil, fmt.Errorf("etcdlock: prefix has %d bytes, at most %d are allowed", len(c.prefix), maxName)
	}
	c.core = newCore(client, c.ttl)
	if _, err := c.kind(plain); err != nil { // reports wrong options at once
		c.core.close(context.Background())
		return nil, err
	}
	return c, nil
}

// kind returns the locks of a kind.
func (c *Client) kind(k *kind) (*lease.Client, error) {
	return c.kinds.Client(k, func() (*lease.Client, error) {
		// Each holder gets its own token, and local waiters do not go before remote waiters.
		opts := append([]lease.Option{
			driver.WithErrorPrefix("etcdlock"), lease.WithMaxLocalHandoffs(0), placeOf(c.core.client),
		}, c.lease...)
		opts = append(opts, lease.WithTTL(c.ttl))
		if k.alone {
			opts = append(opts, lease.WithMaxLocalHandoffs(0))
		}
		return lease.New(&store{c: c.core, kind: k}, opts...)
	})
}

// placeOf says where the locks of client are. Keys begin with the name of their lock, unless the KV
// of client puts a namespace in front of the name. Then this package does not know the whole keys.
// A zero byte in front of the name tells [locks.Multi] that the lock is without an order.
func placeOf(client *clientv3.Client) lease.Option {
	prefix := ""
	if of := reflect.TypeOf(client.KV); of != reflect.TypeOf(clientv3.NewKV(client)) {
		prefix = "\x00"
	}
	return driver.WithPlace("etcd "+strings.Join(slices.Sorted(slices.Values(client.Endpoints())), ","), prefix)
}

// maxName is how many bytes the name of a lock may have.
const maxName = 4096

// escaper removes the slashes of names. Otherwise the keys of one lock could be among the keys of
// another lock.
var escaper = strings.NewReplacer("%", "%25", "/", "%2F")

// Prefix returns the prefix that makes concurrency.NewMutex the same lock as [Client.Mutex] of
// this name. Prefix is the Client's prefix followed by the name, with "/" as "%2F" and "%" as
// "%25".
func (c *Client) Prefix(name string) string { return c.prefix + escaper.Replace(name) }

var errNoName = driver.Mark(errors.New("the name is empty"), driver.ErrRefused)

// mutex returns the lock of kind k called name, whose keys begin with prefix and a slash.
func (c *Client) mutex(k *kind, name, prefix string, opts []lease.MutexOption) *lease.Mutex {
	lc, prefix, bad := c.locksOf(k, name, prefix)
	return lc.Mutex(prefix, append([]lease.MutexOption{bad}, opts...)...)
}

// locksOf returns the locks of kind k, the prefix of the lock called name, and the option that
// refuses a wrong name.
func (c *Client) locksOf(k *kind, name, prefix string) (*lease.Client, string, lease.MutexOption) {
	var bad error
	switch {
	case name == "":
		bad, prefix = errNoName, ""
	case len(name) > maxName:
		bad = fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), maxName)
	}
	lc, err := c.kind(k)
	if err != nil {
		bad = err
		lc, _ = c.kind(plain)
	}
	return lc, prefix, driver.WithRefusal(bad)
}

// Locker returns the lock called name. It is a [*lease.Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the lock called name. It excludes etcd's own concurrency.Mutex on [Client.Prefix]
// of the name.
func (c *Client) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	return c.mutex(plain, name, c.Prefix(name), opts)
}

// MutexLocker returns the same lock as concurrency.NewMutex(session, prefix), with any prefix. It
// does not put the Client's own prefix in front. As with etcd's mutex, the holder of "a/b" also
// excludes others from "a".
func (c *Client) MutexLocker(prefix string, opts ...lease.MutexOption) *lease.Mutex {
	return c.mutex(plain, prefix, prefix, opts)
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]. See
// [lease.Client.Close]. It does not close the client that New was given. Only the first call does
// anything.
func (c *Client) Close(ctx context.Context) error {
	first, err := c.kinds.Close(ctx)
	if first && c.core.close(ctx) {
		return nil // whatever the locks' own requests have come to
	}
	return err
}

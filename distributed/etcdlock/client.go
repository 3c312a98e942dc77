package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// ErrSessionExpired reports that the etcd lease under a lock or a waiter's place in the queue is over, or that its key was
// deleted. A waiter's LockContext returns it. A holder finds it beside [locks.ErrLost].
var ErrSessionExpired = errors.New("etcdlock: session expired")

// Client gives locks that live in an etcd cluster, by name. It is a [locks.Provider]. It is safe for concurrent use;
// [Client.Close] ends it.
type Client struct {
	core   *core
	prefix string
	lease  []lease.Option

	mu     sync.Mutex
	kinds  map[*kind]*lease.Client
	closed bool
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes a Client.
type Option func(*Client)

// WithLease sets what is the same for the locks of every store, such as [lease.WithTTL] and [lease.WithLogger].
func WithLease(opts ...lease.Option) Option {
	return func(c *Client) { c.lease = append(c.lease, opts...) }
}

// WithPrefix sets what all keys begin with, such as "/locks/"; nothing if not given. Clients with other prefixes have other
// locks, as long as no prefix is another one with a lock's name and a slash behind it.
func WithPrefix(prefix string) Option { return func(c *Client) { c.prefix = prefix } }

// New returns a Client of the cluster that client has. It never closes client, and has to be closed before client is. It
// runs a few goroutines until then.
//
// A client that reaches one member only, by a connection that has silently died, does not notice before its
// DialKeepAliveTime and DialKeepAliveTimeout are over. They are worth setting.
func New(client *clientv3.Client, opts ...Option) (*Client, error) {
	if client == nil {
		return nil, errors.New("etcdlock: nil client")
	}
	c := &Client{kinds: make(map[*kind]*lease.Client)}
	for _, o := range opts {
		o(c)
	}
	if len(c.prefix) > maxName {
		return nil, fmt.Errorf("etcdlock: prefix has %d bytes, at most %d are allowed", len(c.prefix), maxName)
	}
	c.core = newCore(client)
	if _, err := c.kind(plain); err != nil { // tells wrong options at once
		c.core.close(context.Background())
		return nil, err
	}
	return c, nil
}

// kind returns the locks of a kind.
func (c *Client) kind(k *kind) (*lease.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lc := c.kinds[k]; lc != nil {
		return lc, nil
	}
	if c.closed {
		return nil, locks.ErrClosed
	}
	// Each holder has a token of its own, and those here are no better than those elsewhere.
	opts := append([]lease.Option{lease.WithMaxLocalHandoffs(0)}, c.lease...)
	if k.alone {
		opts = append(opts, lease.WithMaxLocalHandoffs(0))
	}
	lc, err := lease.New(&store{c: c.core, kind: k}, opts...)
	if err != nil {
		return nil, err
	}
	c.kinds[k] = lc
	return lc, nil
}

// maxName is how many bytes the name of a lock may have.
const maxName = 4096

// escaper makes names into parts of keys that hold no slash, so that no lock's keys are among another's.
var escaper = strings.NewReplacer("%", "%25", "/", "%2F")

// Prefix returns what to give to concurrency.NewMutex to have etcd's own mutex be the same lock as [Client.Lock] of this name:
// the Client's prefix and the name, in which "/" is written as "%2F" and "%" as "%25".
func (c *Client) Prefix(name string) string { return c.prefix + escaper.Replace(name) }

// Lock is a lock of one name: a [lease.Mutex], whose Name is what its keys begin with. One whose name cannot be that of a lock
// cannot be taken; the error says why.
type Lock struct {
	*lease.Mutex
	bad   error
	other *lease.Mutex // the other half of a read-write lock
	core  *core        // of the read half of one
}

var _ locks.Leased = (*Lock)(nil)

// For makes holds last for d and end then, see [lease.WithFixedTTL].
func For(d time.Duration) lease.MutexOption { return lease.WithFixedTTL(d) }

// lock returns the lock of a kind whose keys begin with prefix and a slash, and that is called name.
func (c *Client) lock(k *kind, name, prefix string, opts []lease.MutexOption) *Lock {
	var bad error
	switch {
	case name == "":
		bad = errors.New("etcdlock: empty name of a lock")
	case len(name) > maxName:
		bad = fmt.Errorf("etcdlock: name of a lock has %d bytes, at most %d are allowed", len(name), maxName)
	}
	lc, err := c.kind(k)
	if err != nil {
		bad = err
		lc, _ = c.kind(plain)
	}
	return &Lock{Mutex: lc.Mutex(prefix, opts...), bad: bad}
}

// Locker returns the lock called name. It is a [*Lock].
func (c *Client) Locker(name string) locks.TryLocker { return c.Lock(name) }

// Lock returns the lock called name. It excludes etcd's own concurrency.Mutex on [Client.Prefix] of the name.
func (c *Client) Lock(name string, opts ...lease.MutexOption) *Lock {
	return c.lock(plain, name, c.Prefix(name), opts)
}

// MutexLocker returns the lock that concurrency.NewMutex(session, prefix) is, whatever prefix looks like. The Client's own
// prefix is not put in front. As with etcd's mutex, "a" and "a/b" get in each other's way: whoever has the second has the first.
func (c *Client) MutexLocker(prefix string, opts ...lease.MutexOption) *Lock {
	return c.lock(plain, prefix, prefix, opts)
}

// LockContext takes the lock, and waits for it until ctx ends.
func (l *Lock) LockContext(ctx context.Context) error {
	ctx, err := l.admit(ctx)
	if err != nil {
		return err
	}
	return l.Mutex.LockContext(ctx)
}

// TryLockContext takes the lock if nobody has it or waits for it. It waits for the cluster's answer until ctx ends.
func (l *Lock) TryLockContext(ctx context.Context) (bool, error) {
	ctx, err := l.admit(ctx)
	if err != nil {
		return false, err
	}
	return l.Mutex.TryLockContext(ctx)
}

// Close releases all holds, and has all who wait return [locks.ErrClosed]; see [lease.Client.Close]. It does not
// close the client that New was given. Only the first call does anything.
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

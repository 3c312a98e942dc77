package open

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/named"
)

var (
	// ErrURL is matched by errors about a wrong URL, its parameters or the options of [URL], or
	// about a store that the program does not import. No request was sent.
	ErrURL = driver.ErrURL

	// ErrUnreachable is [lease.ErrUnreachable]. It is matched by errors that say that the store did
	// not answer. Its address may be wrong, or it is down. An error with which the server answers,
	// such as for a wrong password, matches neither this nor [ErrURL].
	ErrUnreachable = lease.ErrUnreachable
)

// DefaultTimeout limits [URL] if its context is without a deadline.
const DefaultTimeout = driver.DefaultTimeout

// Client is the locks of one store, as a [locks.Provider]. It owns the connections to the store. It
// is made by [URL], and is safe for concurrent use. The methods of a zero Client panic.
// [Client.Close] ends it.
type Client struct{ store *driver.Opening }

var _ locks.Provider = (*Client)(nil)

// opening returns the store of c, and panics without one.
func (c *Client) opening() *driver.Opening {
	if c.store == nil {
		panic("open: a zero Client has no store: use URL")
	}
	return c.store
}

// Option changes how [URL] opens a store, whichever it is. An option wins over the parameter of the
// URL, and is ignored by a store without such a thing.
type Option func(*driver.Options)

// WithTTL sets how long a hold lasts without renewal, see [lease.WithTTL]. For ZooKeeper it is the
// session timeout. The default is the default of the adapter, 30 seconds. The locks of mem and file
// are without such a limit.
func WithTTL(d time.Duration) Option { return func(o *driver.Options) { o.TTL = d } }

// WithLabel sets the name of this process that Inspect returns, here and in other processes. See
// [lease.WithLabel].
func WithLabel(label string) Option { return func(o *driver.Options) { o.Label = label } }

// WithLeaseOptions sets options that the locks of all stores but mem and file have, such as
// [lease.WithLogger].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(o *driver.Options) { o.Lease = append(o.Lease, opts...) }
}

// URL opens the store at a URL, and waits for its first answer until ctx ends. If ctx is without a
// deadline, it waits for [DefaultTimeout] at most. The end of ctx after that does not affect the
// Client. See the package comment for the URLs.
//
// The error matches [ErrURL] or [ErrUnreachable], or the store has answered with an error. It
// matches the error of ctx only if ctx has ended.
func URL(ctx context.Context, url string, opts ...Option) (*Client, error) {
	if ctx == nil {
		return nil, fmt.Errorf("open: %w", locks.ErrNilContext)
	}
	var given driver.Options
	for _, f := range opts {
		f(&given)
	}
	store, err := driver.Open(ctx, url, given)
	if err != nil {
		return nil, err
	}
	return &Client{store}, nil
}

// Schemes returns the schemes of the URLs that the program knows, sorted: mem, and the schemes of
// the stores that it imports.
func Schemes() []string { return driver.Registered() }

// Locker returns the lock called name, of the kind that the URL says. Its type comes from the
// store's package: a [locks.Inspector] in all of them, and a [locks.Leased] in all but mem.
func (c *Client) Locker(name string) locks.TryLocker { return c.opening().Locker(name) }

// Semaphore returns the semaphore called name, which is independent of the lock of that name. All
// programs should give it the same size. The stores mem, file and kubernetes have none, nor has
// kind advisory of a database: they return [errors.ErrUnsupported]. See [lease.Semaphore].
func (c *Client) Semaphore(name string, size int64) (*lease.Semaphore, error) {
	if c.opening().Semaphore == nil {
		return nil, fmt.Errorf("open: semaphore %q: %w: %s has none", name, errors.ErrUnsupported, c.opening().About)
	}
	return c.opening().Semaphore(name, size), nil
}

// Names returns the names of the locks in the store that match pattern, sorted. The pattern is that
// of [path.Match]: * stands for any text without a slash. An empty pattern stands for all names. A
// malformed one returns [path.ErrBadPattern].
//
// Names is for people and for monitoring. It reads the store page by page until ctx ends, and the
// answer describes the past. The locks in the answer depend on the store:
//
//	file        every lock that was ever used, except locks with long names
//	sqlite...   of table and queue, the held locks. Other kinds return errors.ErrUnsupported.
//	redis...    the held locks: keys below the prefix that look like a lock of the kind.
//	zk          the locks that are held or waited for
//	etcd        the locks that are held or waited for, also the locks of concurrency.Mutex
//	consul      every lock that was ever used, also every key of Consul's own lock
//	nats        every lock that was ever used
//	s3, gs      every lock that was ever used
//	dynamodb    every lock that was ever used and not swept. It reads the whole table.
//	kubernetes  every lock that was ever used and not swept
//	mem         errors.ErrUnsupported
func (c *Client) Names(ctx context.Context, pattern string) ([]string, error) {
	if ctx == nil {
		return nil, fmt.Errorf("open: list names: %w", locks.ErrNilContext)
	}
	if c.opening().Names == nil {
		return nil, fmt.Errorf("open: list names: %w: %s keeps no list of them", errors.ErrUnsupported, c.opening().About)
	}
	names, err := c.opening().Names(ctx, pattern)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ForceUnlock frees the lock called name without its holder's consent, and reports whether it was
// held. See [lease.Mutex.ForceUnlock]. The locks of mem and of files, and locks of kind advisory,
// return [errors.ErrUnsupported]: they belong to a process or its connection, and end with that.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	l, ok := c.opening().Locker(name).(interface {
		ForceUnlock(ctx context.Context) (bool, error)
	})
	if !ok {
		return false, fmt.Errorf("open: force unlock %q: %w: only its holder can release a lock of %s",
			name, errors.ErrUnsupported, c.opening().About)
	}
	return l.ForceUnlock(ctx)
}

// String returns the URL without user, password and parameters.
func (c *Client) String() string { return c.opening().About }

// Close ends the Client. Unless the URL is of mem or file, Close releases all holds, makes all
// waiters return [locks.ErrClosed], and closes the connections to the store: see
// [lease.Client.Close]. Only the first call has an effect.
//
// Close leaves the locks of mem as they are. A hold of file is lost, not released: other processes
// can acquire the lock at once, and goroutines of this process wait until its owner calls
// UnlockContext. See [github.com/jucgo/locks/distributed/filelock.Client.Close].
func (c *Client) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	return c.opening().Close(ctx)
}

func init() {
	driver.Register(driver.Scheme{Name: "mem", Form: "mem:", Kinds: []string{"plain", "fair"}, Open: openMemory})
}

func openMemory(_ context.Context, o *driver.Opening) error {
	policy := locks.NonFair
	if o.Kind() == "fair" {
		policy = locks.FIFO
	}
	o.Locker = named.New(policy).Locker
	return nil
}

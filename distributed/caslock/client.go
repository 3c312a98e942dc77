package caslock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Defaults of [WithPolling].
const (
	DefaultFirstPause = 250 * time.Millisecond
	DefaultMostPause  = 5 * time.Second
)

// Client gives locks that are documents, by name. It is a [locks.Provider]. It is safe for
// concurrent use. [Client.Close] ends it. The methods of a zero Client panic, and a Client must not
// be copied.
type Client struct {
	locks, semaphores *store
	clients           driver.Group[*store, *lease.Client]
	lease             *lease.Client // of locks
	options           []lease.Option
	prefix            string
	format            Format
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] makes a Client.
type Option func(*options)

type options struct {
	prefix      string
	format      Format
	first, most time.Duration
	lease       []lease.Option
}

// WithTTL sets how long a hold lasts without a renewal, [lease.DefaultLease] if not given. The
// client renews holds each third of that time. When a process dies, others wait for that time.
// Clients may have different times: each document names its own.
func WithTTL(d time.Duration) Option { return WithLeaseOptions(lease.WithTTL(d)) }

// WithLabel sets the name of this process that [lease.Mutex.Inspect] returns, here and in other
// processes. The default is the name of the host and the process id. See [lease.WithLabel].
func WithLabel(label string) Option { return WithLeaseOptions(lease.WithLabel(label)) }

// WithPolling sets how long a waiter pauses before it reads the document again. A pause is a
// quarter of the time for which the lock has had its present holder, as far as this client knows.
// It is at least first and at most most, shortened at random by a half at most. The defaults are
// [DefaultFirstPause] and [DefaultMostPause]. No pause is longer than the lease of the holder,
// which may have died.
//
// If the store is a [Watcher], notices replace these pauses. A waiter then also reads without a
// notice, after most or [lease.DefaultPoll], whichever is longer. The pauses between watches that
// fail double from first to most.
func WithPolling(first, most time.Duration) Option {
	return func(o *options) { o.first, o.most = first, most }
}

// WithFormat sets what documents look like, [JSON] if not given. All clients need the same.
func WithFormat(f Format) Option { return func(o *options) { o.format = f } }

// WithErrorPrefix sets what errors begin with, "caslock" if not given. It is for adapters.
func WithErrorPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// WithLeaseOptions sets the rarer options of package lease, such as [lease.WithLogger].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(o *options) { o.lease = append(o.lease, opts...) }
}

// New returns a Client of locks in d. New sends no request. The Client runs one goroutine until
// it is closed, a second goroutine if it has semaphores, and one more for each waiter.
func New(d Documents, opts ...Option) (*Client, error) {
	o := options{prefix: "caslock", format: JSON, first: DefaultFirstPause, most: DefaultMostPause}
	for _, f := range opts {
		f(&o)
	}
	switch {
	case d == nil:
		return nil, fmt.Errorf("%s: nil Documents", o.prefix)
	case o.format == nil:
		return nil, fmt.Errorf("%s: nil Format", o.prefix)
	case o.first < time.Millisecond || o.most < o.first:
		return nil, fmt.Errorf("%s: pauses from %v to %v: at least 1ms, and in this order, is allowed",
			o.prefix, o.first, o.most)
	}
	// Each holder gets its own token, and local waiters do not go before waiters of other
	// processes.
	common := []lease.Option{lease.WithMaxLocalHandoffs(0), lease.WithPoll(max(o.most, lease.DefaultPoll))}
	c := &Client{
		locks: newStore(d, o), semaphores: newSemaphores(d, o), prefix: o.prefix, format: o.format,
		options: append(append(common, o.lease...), driver.WithErrorPrefix(o.prefix)),
	}
	var err error
	if c.lease, err = c.client(c.locks); err != nil {
		c.locks.end()
		c.semaphores.end()
		return nil, err
	}
	return c, nil
}

// client returns the client of the engine for locks or semaphores.
func (c *Client) client(s *store) (*lease.Client, error) {
	return c.clients.Client(s, func() (*lease.Client, error) { return lease.New(s, c.options...) })
}

// mustBeMade panics if c does not come from [New].
func (c *Client) mustBeMade() {
	if c.locks == nil {
		panic("caslock: a zero Client has no store: use New")
	}
}

// Locker returns the lock called name. It is a [*lease.Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the lock called name.
func (c *Client) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	c.mustBeMade()
	opts = append([]lease.MutexOption{driver.WithRefusal(c.locks.checkName(name))}, opts...)
	return c.lease.Mutex(name, opts...)
}

// Semaphore returns the semaphore called name, of size permits. A semaphore is one document,
// which lists all holders. The document is called name followed by ".semaphore", so a lock called
// name is another document. A lock with the name of the semaphore's document returns
// [locks.ErrForeign].
//
// Processes are not served in order. Small acquisitions can pass an acquisition of many permits
// for as long as they keep coming. Tokens increase from acquisition to acquisition.
//
// An acquisition, a release and a renewal take a read and a write each. While no other client
// changes the document, each takes a write alone. One write renews all permits that this client
// has of one semaphore. Of several clients that change the document at once, one succeeds, and
// the others try again. So a semaphore has one change at most for each two round trips to the
// store. Releases by one client at one time share a write. If a release takes longer than the
// release timeout, the call returns [locks.ErrLost], and the release goes on in the background. A
// waiter reads the document after each change, or polls, see [WithPolling].
//
// If a process dies, its permits return. A waiter may remove a holder when it has seen the
// holder's entry unchanged for the lease, and a hundredth more. Renewals of other holders do not
// matter. A waiter that comes later counts from its first read. Faults have the same effects as
// for locks, and the store needs the same properties: see the documentation of the package.
//
// A document has at most [MaxData] bytes, which is room for about 50 acquisitions at a time, of
// any number of permits. The next acquisition gets an error. With another Format than [JSON] all
// methods return an error matching [errors.ErrUnsupported].
func (c *Client) Semaphore(name string, size int64) *lease.Semaphore {
	c.mustBeMade()
	refusal := c.semaphores.checkName(name)
	if c.format != JSON {
		refusal = fmt.Errorf("%w: the format of the documents has no room for several holders", errors.ErrUnsupported)
	}
	lc, err := c.client(c.semaphores)
	if err != nil {
		lc, refusal = c.lease, err
	}
	return lc.Semaphore(name, size, driver.WithRefusal(refusal))
}

// Names returns the names of the documents that match pattern, in the order of the store. Free
// locks are among them, and so are semaphores. The pattern has the syntax of [path.Match], and
// the empty pattern matches all names. If the store does not implement [Lister], the error
// matches [errors.ErrUnsupported].
func (c *Client) Names(ctx context.Context, pattern string) ([]string, error) {
	names, err := c.names(ctx, pattern)
	return names, c.fail("list names", adapter.OfStore(ctx, err))
}

func (c *Client) names(ctx context.Context, pattern string) (matching []string, err error) {
	c.mustBeMade()
	lister, ok := c.locks.documents.(Lister)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if ctx == nil {
		return nil, locks.ErrNilContext
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	names, err := lister.Names(ctx)
	for _, name := range names {
		if ok, _ := path.Match(pattern, name); ok || pattern == "" {
			matching = append(matching, name)
		}
	}
	return matching, err
}

// Sweep deletes the documents of locks and semaphores that match pattern, are free, and were
// released longer than unused ago. It returns their names, also with an error. The time is
// measured between two wall clocks: the clock of the process which released the lock, and the
// clock here. A document that does not say when it was written stays.
//
// A deletion has two risks, which the documents were kept to avoid:
//
//   - The tokens of such a lock begin anew with 1. A resource that remembers the last token, such
//     as one behind package fence, refuses the next holders until it forgets as well.
//   - An earlier request to create the document, which got no answer, can come late. The lock is
//     then held for a lease, although no client knows of the hold.
//
// Sweep deletes a document only in the version that it has read. If versions never come again, as
// [Documents] demands, the deletion never leads to two holders at once. In a store whose versions
// begin anew with a new document, it may.
//
// A lock whose holder has died is not free: use [lease.Mutex.ForceUnlock] before. Documents that
// belong to no lock stay. If the store does not implement [Lister] and [Deleter], the error
// matches [errors.ErrUnsupported].
func (c *Client) Sweep(ctx context.Context, pattern string, unused time.Duration) ([]string, error) {
	swept, err := c.sweep(ctx, pattern, unused)
	return swept, c.fail("sweep", adapter.OfStore(ctx, err))
}

func (c *Client) sweep(ctx context.Context, pattern string, unused time.Duration) (swept []string, err error) {
	c.mustBeMade()
	deleter, ok := c.locks.documents.(Deleter)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	names, err := c.names(ctx, pattern)
	for _, name := range names {
		if c.locks.checkName(name) != nil {
			continue
		}
		d, failed := c.locks.load(ctx, name)
		if of, ok := strings.CutSuffix(name, semaphoreSuffix); ok && errors.Is(failed, locks.ErrForeign) {
			d, failed = c.semaphores.load(ctx, of)
		}
		unheld := failed == nil && len(d.holders) == 0 && !d.written.IsZero()
		if unheld && time.Since(d.written) >= unused {
			if failed = deleter.Delete(ctx, name, d.version); failed == nil {
				swept = append(swept, name)
			}
		}
		if failed != nil && !errors.Is(failed, ErrConflict) && !errors.Is(failed, locks.ErrForeign) {
			return swept, fmt.Errorf("%q: %w", name, failed)
		}
	}
	return swept, err
}

func (c *Client) fail(op string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", c.prefix, op, err)
	}
	return err
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]. See
// [lease.Client.Close]. It sends a request for each hold, 16 at a time. Only the first call does
// anything.
func (c *Client) Close(ctx context.Context) error {
	c.mustBeMade()
	_, err := c.clients.Close(ctx)
	for _, s := range []*store{c.locks, c.semaphores} {
		s.end()
		s.jobs.Close(ctx)
	}
	return err
}

package open

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

var (
	// ErrURL is matched by errors that say what is wrong with a URL, its parameters or the options
	// of [Provider]. No request was sent.
	ErrURL = errors.New("invalid URL")

	// ErrUnreachable is matched by errors that say that the store did not answer. Its address may
	// be wrong, or it is down. If the server answers with an error, such as for a wrong password,
	// the error matches neither this nor [ErrURL].
	ErrUnreachable = errors.New("the store cannot be reached")
)

// DefaultTimeout limits [Provider] if its context has no deadline.
const DefaultTimeout = 10 * time.Second

// Store is the locks of one store, as a [locks.Provider]. It owns the connections to the store. It
// is made by [Provider], and is safe for concurrent use. [Store.Close] ends it.
type Store struct {
	about   string
	locker  func(name string) locks.TryLocker
	names   func(ctx context.Context, pattern string) ([]string, error)
	close   []func(context.Context) error // the last one first
	closing chan struct{}                 // has one element until Close takes it
}

var _ locks.Provider = (*Store)(nil)

// Option changes how [Provider] opens a store, whichever it is. An option wins over the parameter
// of the URL, and has no effect on a store without such a thing.
type Option func(*options)

type options struct {
	ttl   time.Duration
	label string
	lease []lease.Option
}

// WithTTL sets how long a hold lasts without renewal, see [lease.WithTTL]. For ZooKeeper it is the
// session timeout. The default is that of the adapter, which is 30 seconds. The locks of mem and
// file have no such limit.
func WithTTL(d time.Duration) Option { return func(o *options) { o.ttl = d } }

// WithLabel sets the name of this process that Inspect returns, here and in other processes. See
// [lease.WithLabel].
func WithLabel(label string) Option { return func(o *options) { o.label = label } }

// WithLeaseOptions sets options that the locks of all stores but mem and file have, such as
// [lease.WithLogger].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(o *options) { o.lease = append(o.lease, opts...) }
}

// Provider opens the store at a URL, and waits for its first answer until ctx ends. If ctx has no
// deadline, it waits for [DefaultTimeout] at most. The end of ctx after that has no effect on the
// Store. See the package comment for the URLs.
//
// The error matches [ErrURL] or [ErrUnreachable], or the store has answered with an error. It
// matches the error of ctx only if ctx has ended.
func Provider(ctx context.Context, url string, opts ...Option) (*Store, error) {
	if ctx == nil {
		return nil, fmt.Errorf("open: %w", locks.ErrNilContext)
	}
	o := &opening{Store: &Store{closing: make(chan struct{}, 1)}}
	o.closing <- struct{}{}
	for _, f := range opts {
		f(&o.options)
	}
	if err := o.parse(url); err != nil {
		return nil, o.fail(err)
	}
	if ctx.Err() != nil {
		return nil, o.fail(ended(ctx))
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel = context.WithTimeout(ctx, DefaultTimeout)
	}
	defer cancel()
	if err := o.scheme.open(limited, o); err != nil {
		o.Close(context.WithoutCancel(ctx))
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ended(ctx), err)
		}
		return nil, o.fail(err)
	}
	return o.Store, nil
}

// ended returns the error of a context that has ended, with its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Locker returns the lock called name, of the kind that the URL says. Its type is that of the
// store's package: a [locks.Inspector] in all of them, and a [locks.Leased] in all but mem.
func (s *Store) Locker(name string) locks.TryLocker { return s.locker(name) }

// Names returns the names of the locks in the store that match pattern, sorted. The pattern is that
// of [path.Match]: * stands for any text without a slash. An empty pattern stands for all names. A
// malformed one returns [path.ErrBadPattern].
//
// Names is for people and for monitoring. It reads the store page by page until ctx ends, and the
// answer describes the past. What it sees depends on the store:
//
//	file      every lock that was ever used, except those with long names
//	sqlite... of table and queue, those that are held. Others return errors.ErrUnsupported.
//	redis...  those that are held: keys below the prefix that look like a lock of the kind.
//	zk        those that are held or waited for
//	etcd      those that are held or waited for, also those of concurrency.Mutex
//	mem       errors.ErrUnsupported
func (s *Store) Names(ctx context.Context, pattern string) ([]string, error) {
	if ctx == nil {
		return nil, fmt.Errorf("open: list names: %w", locks.ErrNilContext)
	}
	if s.names == nil {
		return nil, fmt.Errorf("open: list names: %w: %s keeps no list of them", errors.ErrUnsupported, s.about)
	}
	names, err := s.names(ctx, pattern)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ForceUnlock frees the lock called name without its holder's consent, and reports whether it was
// held. See [lease.Mutex.ForceUnlock]. The locks of Redis, etcd, ZooKeeper, and those of kind table
// and queue have it. Others return [errors.ErrUnsupported]: a file lock, a row lock and an advisory
// lock belong to a process or its connection, and end with that.
func (s *Store) ForceUnlock(ctx context.Context, name string) (bool, error) {
	l, ok := s.locker(name).(interface {
		ForceUnlock(ctx context.Context) (bool, error)
	})
	if !ok {
		return false, fmt.Errorf("open: force unlock %q: %w: only its holder can release a lock of %s",
			name, errors.ErrUnsupported, s.about)
	}
	return l.ForceUnlock(ctx)
}

// String returns the URL without user, password and parameters.
func (s *Store) String() string { return s.about }

// Close releases all holds, makes all waiters return [locks.ErrClosed], and closes the connections
// to the store. See [lease.Client.Close]. Locks of mem stay as they are. Only the first call has an
// effect.
func (s *Store) Close(ctx context.Context) error {
	select {
	case <-s.closing:
	default:
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	var errs []error
	for _, f := range slices.Backward(s.close) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

// closeLast has f called by Close, before what was given earlier.
func (s *Store) closeLast(f func(context.Context) error) { s.close = append(s.close, f) }

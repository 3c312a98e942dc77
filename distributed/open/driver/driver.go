// Package driver is for authors of stores that package open opens by a URL, as database/sql/driver
// is for authors of databases. Users of locks read package open.
//
// An adapter has a package for each scheme, called SCHEMEopen: redislock/redisopen for redis:, and
// sqllock/postgresopen for postgres:. Its init function gives [Register] a [Scheme]. A program
// imports the package for this effect, and package open/all imports the packages of this
// repository. So a program has only the clients of the stores that it imports.
//
// Package open reads the URL, refuses unknown parameters, and keeps users and passwords out of
// errors. The function Open of the Scheme connects to the store, and sets the fields of the
// [Opening] that give the locks. It returns errors of these kinds:
//
//   - [Reason] says what is wrong with the URL or its parameters. The error matches [ErrURL].
//   - [Opening.Failed] and [Opening.Unreachable] are for errors of the store's client, whose text
//     may contain secrets.
package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
)

// DefaultTimeout limits [Open] if its context is without a deadline.
const DefaultTimeout = 10 * time.Second

// DialTimeout is how long a connection may take, also after the store was opened.
const DialTimeout = 5 * time.Second

// Scheme is a kind of store, which URLs with this scheme open.
type Scheme struct {
	Name  string
	Form  string                  // of the URL, for errors
	Port  string                  // of hosts without one; "" if the URL has no hosts, and NoPort
	Many  bool                    // there may be several hosts
	Kinds []string                // the first kind is the default
	More  []string                // parameters besides kind
	Check func(path string) error // refuses a path without showing it; nil if each is right

	// Open connects to the store until ctx ends, and waits for its first answer. The end of ctx
	// after that does not affect the store.
	Open func(ctx context.Context, o *Opening) error

	// Silence, if not nil, ends the messages that the store's client prints by itself in the whole
	// process. A library must not call it.
	Silence func()

	// NoAnswer, if not nil, reports whether an error of a lock is one of the store's client by
	// which it says that it got no answer. It need not recognize [lease.ErrUnreachable], errors of
	// package net, or the end of a stream.
	NoAnswer func(err error) bool
}

// NoPort is the Port of a scheme whose host is a name with another meaning, such as a bucket.
const NoPort = "none"

// Leased returns the parameters of all stores whose locks have leases. Their values are in the
// fields TTL, Label and Lease of an [Opening].
func Leased() []string { return []string{"label", "ttl"} }

// Certificate returns the parameters that [Opening.TLS] reads.
func Certificate() []string { return []string{"cacert", "cert", "key"} }

// stores are the schemes of this repository in the order of the documentation, with the packages
// that register them.
var stores = []struct{ scheme, pkg string }{
	{"mem", "open"}, {"file", "filelock/fileopen"}, {"sqlite", "sqllock/sqliteopen"},
	{"postgres", "sqllock/postgresopen"}, {"mysql", "sqllock/mysqlopen"},
	{"redis", "redislock/redisopen"}, {"rediss", "redislock/redisopen"},
	{"redis+sentinel", "redislock/redisopen"}, {"redis+cluster", "redislock/redisopen"},
	{"zk", "zklock/zkopen"}, {"etcd", "etcdlock/etcdopen"}, {"consul", "consullock/consulopen"},
	{"nats", "natslock/natsopen"}, {"s3", "s3lock/s3open"}, {"dynamodb", "dynamolock/dynamodbopen"},
	{"gs", "gcslock/gsopen"}, {"kubernetes", "k8slock/kubernetesopen"},
}

// distributed is the path of the packages of stores.
const distributed = "github.com/jucgo/locks/distributed/"

// registered has the schemes of the imported packages. Only their init functions change it.
var registered = map[string]Scheme{}

// Register makes schemes known to package open. It is for init functions. It panics if another
// package has registered the name of a scheme.
func Register(schemes ...Scheme) {
	for _, s := range schemes {
		if _, twice := registered[s.Name]; twice {
			panic(fmt.Sprintf("open: the scheme %s is registered twice", s.Name))
		}
		registered[s.Name] = s
	}
}

// Registered returns the names of the schemes that the program knows, sorted.
func Registered() []string { return slices.Sorted(maps.Keys(registered)) }

// Silence ends the messages that the clients of stores print by themselves. It is for the main
// functions of commands, whose errors are the only lines that they print.
func Silence() {
	for _, s := range registered {
		if s.Silence != nil {
			s.Silence()
		}
	}
}

// NoAnswer reports whether an error of a lock says that the store gave no answer, in the way of the
// client of a store that the program knows. See the field of a [Scheme].
func NoAnswer(err error) bool {
	for _, s := range registered {
		if s.NoAnswer != nil && s.NoAnswer(err) {
			return true
		}
	}
	return false
}

// find returns the scheme called name.
func find(name string) (Scheme, error) {
	if s, ok := registered[name]; ok {
		return s, nil
	}
	known := Registered()
	var all []string
	for _, s := range stores {
		if s.scheme == name {
			return Scheme{Name: name}, Reason("this program does not import the store: "+
				"import _ %q, or %q for all stores", distributed+s.pkg, distributed+"open/all")
		}
		known = slices.DeleteFunc(known, func(other string) bool { return other == s.scheme })
		all = append(all, s.scheme+":")
	}
	for _, other := range known { // of other repositories
		all = append(all, other+":")
	}
	return Scheme{}, Reason("it must begin with one of %s", strings.Join(all, ", "))
}

// Options are the options of package open that an opener reads.
type Options struct {
	TTL   time.Duration
	Label string
	Lease []lease.Option
}

// Opening is a store that is being opened. The function Open of its scheme sets Locker. It sets
// Names if the store lists its locks, and Semaphore if the store has any. An Opening must not be
// copied.
type Opening struct {
	Scheme         Scheme
	User, Password string
	Hosts          []string // each "host:port", or the name if there is NoPort
	HasPort        bool     // the URL has the port of the last host
	Path           string   // of a server: without the slash in front
	Params         map[string]string
	About          string // the URL without user, password and parameters

	// Options are the options of package open, or the parameters. Lease has the other options as
	// well.
	Options

	Locker    func(name string) locks.TryLocker
	Names     func(ctx context.Context, pattern string) ([]string, error)
	Semaphore func(name string, size int64) *lease.Semaphore

	users, passwords []string
	ends             []func(context.Context) error // for Close, which calls the last function first
	closed           atomic.Bool
}

// Open opens the store at a URL for package open. If ctx is without a deadline, the first answer
// must come within [DefaultTimeout]. The error names the operation. It matches the error of ctx
// only if ctx has ended.
func Open(ctx context.Context, url string, opts Options) (*Opening, error) {
	o := &Opening{Options: opts}
	if err := o.parse(url); err != nil {
		return nil, o.openError(err)
	}
	if ctx.Err() != nil {
		return nil, o.openError(adapter.Ended(ctx))
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel = context.WithTimeout(ctx, DefaultTimeout)
	}
	defer cancel()
	if err := o.Scheme.Open(limited, o); err != nil {
		o.Close(context.WithoutCancel(ctx))
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", adapter.Ended(ctx), err)
		}
		return nil, o.openError(err)
	}
	return o, nil
}

// OnClose has f called by Close, before the functions of earlier calls.
func (o *Opening) OnClose(f func(context.Context) error) { o.ends = append(o.ends, f) }

// OnEnd is OnClose for a function that cannot fail.
func (o *Opening) OnEnd(f func()) {
	o.OnClose(func(context.Context) error {
		f()
		return nil
	})
}

// Serve opens the locks of client, which was made with err: its Locker, and Names and Semaphore if
// it has these methods. Close closes client.
func (o *Opening) Serve(client interface {
	locks.Provider
	Close(ctx context.Context) error
}, err error) error {
	if err != nil {
		return Reason("%w", err)
	}
	o.OnClose(client.Close)
	o.Locker = client.Locker
	if c, ok := client.(interface {
		Names(ctx context.Context, pattern string) ([]string, error)
	}); ok {
		o.Names = c.Names
	}
	if c, ok := client.(interface {
		Semaphore(name string, size int64) *lease.Semaphore
	}); ok {
		o.Semaphore = c.Semaphore
	}
	return nil
}

// Close calls the functions that [Opening.OnClose] was given, the last first. Only the first call
// does anything.
func (o *Opening) Close(ctx context.Context) error {
	if o.closed.Swap(true) {
		return nil
	}
	var errs []error
	for _, end := range slices.Backward(o.ends) {
		errs = append(errs, end(ctx))
	}
	return adapter.Join(errs...)
}

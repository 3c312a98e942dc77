// Package scheme reads the URLs of package open, and knows the stores that a program has imported.
package scheme

import (
	"context"
	"strings"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// DialTimeout is how long a connection may take after the store was opened.
const DialTimeout = 5 * time.Second

// Scheme is a kind of store.
type Scheme struct {
	Name  string
	Form  string                  // of the URL, for errors
	Port  string                  // of hosts without one; "" if the URL has no hosts, and NoPort
	Many  bool                    // there may be several hosts
	Kinds []string                // the first one is the default
	More  []string                // parameters besides kind
	Check func(path string) error // refuses a path without showing it; nil if each is right
	Open  func(ctx context.Context, o *Opening) error
}

// NoPort is the Port of a scheme whose host is a name with another meaning, such as a bucket.
const NoPort = "none"

// Parameters that several schemes have.
var (
	Leased      = []string{"label", "ttl"}
	Certificate = []string{"cacert", "cert", "key"}
)

type store struct{ scheme, pkg string }

// path returns the path of the package below that of package open.
func (s store) path() string { return strings.TrimSuffix("/"+s.pkg, "/") }

// stores are all schemes in the order of the documentation, with the packages that register them.
var stores = []store{
	{"mem", ""}, {"file", "file"}, {"sqlite", "sqlite"}, {"postgres", "postgres"}, {"mysql", "mysql"},
	{"redis", "redis"}, {"rediss", "redis"}, {"redis+sentinel", "redis"}, {"redis+cluster", "redis"},
	{"zk", "zookeeper"}, {"etcd", "etcd"}, {"consul", "consul"}, {"nats", "nats"}, {"s3", "s3"},
	{"dynamodb", "dynamodb"}, {"gs", "gcs"}, {"kubernetes", "kubernetes"},
}

// registered has the schemes of the imported packages. Only their init functions change it.
var registered = map[string]Scheme{}

// Register makes schemes known. It is for init functions.
func Register(schemes ...Scheme) {
	for _, s := range schemes {
		registered[s.Name] = s
	}
}

// find returns the scheme called name.
func find(name string) (Scheme, error) {
	if s, ok := registered[name]; ok {
		return s, nil
	}
	var known []string
	for _, s := range stores {
		if s.scheme == name {
			return Scheme{Name: name}, Reason("this program does not import the store: "+
				"import _ %q, or .../open/all", "github.com/jucgo/locks/distributed/open"+s.path())
		}
		known = append(known, s.scheme+":")
	}
	return Scheme{}, Reason("it must begin with one of %s", strings.Join(known, ", "))
}

// Opening is a store that is being opened. The function of its scheme sets Locker. It sets Names if
// the store lists its locks, and Semaphore if the store has any.
type Opening struct {
	Scheme         Scheme
	User, Password string
	Hosts          []string // each "host:port", or the name if there is NoPort
	HasPort        bool     // the URL has the port of the last host
	Path           string   // of a server: without the slash in front
	Params         map[string]string
	About          string // the URL without user, password and parameters

	// Options of package open, or the parameters. Lease has the others as well.
	TTL   time.Duration
	Label string
	Lease []lease.Option

	Locker    func(name string) locks.TryLocker
	Names     func(ctx context.Context, pattern string) ([]string, error)
	Semaphore func(name string, size int64) *lease.Semaphore
	Ends      []func(context.Context) error // for Close, the last one first

	users, passwords []string
}

// CloseLast has f called by Close, before what was given earlier.
func (o *Opening) CloseLast(f func(context.Context) error) { o.Ends = append(o.Ends, f) }

// secretParameters are parameters whose values are in no error.
var secretParameters = []string{"password", "sslpassword", "sentinel_password", "user", "sentinel_user"}

package sqllock

import (
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

var (
	// ErrNoTable reports that the tables are missing: see CreateSchema and [Schema].
	ErrNoTable = errors.New("no such table: call CreateSchema, or run the statements of Schema")

	// ErrUnsupportedTopology reports that a connection is not one session of the server. A pooler,
	// for example, may give each statement or transaction any free session. A lock of a session
	// does not work there.
	ErrUnsupportedTopology = errors.New("one connection is not one session of the server")

	// ErrUnsupported reports a kind of lock that the database does not have.
	ErrUnsupported = errors.New("the database has no such locks")

	// ErrTimeout reports that the database did not answer in time, or that the pool lacked a free
	// connection, which the text says: see [WithRequestTimeout]. It is a [net.Error].
	ErrTimeout error = timeout{}

	errNilDB = errors.New("sqllock: nil *sql.DB")
)

type timeout struct{}

func (timeout) Error() string   { return "no answer in time" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

const (
	// DefaultTable is the table of a [Table]. The names of the other tables begin with it.
	DefaultTable = "sql_locks"
	// DefaultRequestTimeout is how long the database may take to answer.
	DefaultRequestTimeout = 2 * time.Second
	// DefaultMinBackoff and DefaultMaxBackoff limit how long a waiter pauses before it asks
	// again.
	DefaultMinBackoff = 2 * time.Millisecond
	DefaultMaxBackoff = 100 * time.Millisecond
	// DefaultQueueWait is how long a queue keeps the place of a process that no longer asks, at
	// most: a shorter lease is the limit.
	DefaultQueueWait = 30 * time.Second
	// MaxName is how many bytes a lock's name may have.
	MaxName = 255
)

// Option changes how [NewTable], [NewRow] and [NewAdvisory] work. Each ignores options that do not
// concern it.
type Option func(*options)

type options struct {
	dialect  Dialect
	table    string
	lease    []lease.Option
	fair     bool
	wait     time.Duration
	listen   Listener
	min, max time.Duration
	timeout  time.Duration
	key      func(name string) int64
	renamed  bool // key is the user's
	blocks   bool
	sessions bool // of an Advisory
}

// WithDialect sets the kind of database, for drivers that do not show it.
func WithDialect(d Dialect) Option { return func(o *options) { o.dialect = d } }

// WithTable sets the name of the table, [DefaultTable] if not given. It is an identifier of up
// to 48 ASCII letters, digits and underscores, and may have a schema and a dot in front. All
// clients of a lock need the same name.
//
// In PostgreSQL a name without a schema is looked up in the search_path of the connection. Two
// roles with different search paths get two tables, and both may hold a lock of one name. Give the
// schema, such as "public.sql_locks", where roles share locks.
func WithTable(name string) Option { return func(o *options) { o.table = name } }

// WithTTL sets how long a hold lasts without renewal, [lease.DefaultLease] if not given. The
// lease is renewed at each third of it. See [lease.WithTTL].
func WithTTL(d time.Duration) Option { return WithLeaseOptions(lease.WithTTL(d)) }

// WithLabel sets the name of this process that [lease.Mutex.Inspect] returns, here and in other
// processes, of locks of a [Table]. The default is the name of the host and the process id. See
// [lease.WithLabel]. Other processes know the holder of an [Advisory] by the name that its
// connections give to the server, such as application_name.
func WithLabel(label string) Option { return WithLeaseOptions(lease.WithLabel(label)) }

// WithLeaseOptions sets the options that the locks of every store have, such as
// [lease.WithLogger].
func WithLeaseOptions(opts ...lease.Option) Option {
	return func(o *options) { o.lease = append(o.lease, opts...) }
}

// WithQueue makes a [Table] grant its locks in the order of the requests, across all processes. The
// queue is a table as well. A waiter that does not ask for the time wait is dropped from it,
// because its process has died. Waiters behind it wait for as long, whatever their own options are.
// With 0 the time is the waiter's lease, at least a second and at most 30 seconds. Clients with and
// without the option exclude each other. Clients without it, and TryLockContext, barge: they take a
// free lock past the queue.
func WithQueue(wait time.Duration) Option {
	return func(o *options) { o.fair, o.wait = true, wait }
}

// WithListener wakes waiters on PostgreSQL by a notification as soon as a lock is released. All
// clients of a lock should have it, since a client without it sends no notification. Waiters also
// ask from time to time, after the longest pause of [WithBackoff] and then more rarely, each five
// seconds by default, see [lease.WithPoll]. With [WithQueue] a release wakes only the first waiter.
// Without WithQueue a release wakes one waiter of each process. A holder of a [Table] hears of a
// [lease.Mutex.ForceUnlock] elsewhere at once, and not with its next renewal. The listening takes a
// connection from the first waiter or holder on. Behind a pooler that shares sessions the first
// acquisition is refused with [ErrUnsupportedTopology].
func WithListener(l Listener) Option { return func(o *options) { o.listen = l } }

// WithBlockingWait makes the waiters of an [Advisory] wait in the server, as pg_advisory_lock and
// GET_LOCK do. Waiters of a [Row] on PostgreSQL wait as SELECT ... FOR UPDATE does. When the lock
// becomes free, the server gives it to the first waiter. The hand-over takes no pause, no statement
// of the waiter and no listener, and wakes nobody else. Its price:
//
//   - One waiter of a process pins a connection, for each lock that is waited for. The process's
//     other waiters for this lock wait behind it, in order of arrival. Half of the connections of
//     a limited pool stay free of such waiters. If the others are in use, a waiter asks after
//     pauses.
//   - A waiter that gives up ends its connection. It can be given the lock for a moment, and tries
//     are refused then.
//   - A waiter whose machine or network fails can be given the lock, and keeps it until the server
//     notices, as a holder does. Until then its connection counts too.
//   - Each waiter asks about its own session every five seconds over another connection, to notice
//     a dead connection.
//
// On PostgreSQL the price is also:
//
//   - A pooler that shares sessions cannot be used: the first acquisition is refused with
//     [ErrUnsupportedTopology].
//   - When a waiter gives up, the server logs its cancelled statement. lock_timeout and
//     statement_timeout end the statement too, and the waiter begins again, at the end of the
//     queue.
//   - Set the server's client_connection_check_interval: PostgreSQL does not look for dead clients
//     by itself.
//   - A statement that waits has a snapshot. The snapshot keeps VACUUM from removing rows that were
//     deleted since it began. CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY wait for the end
//     of old snapshots. Never run such statements under such a lock: the holder would wait for its
//     own waiters, and PostgreSQL does not detect that deadlock.
//
// On MySQL and MariaDB the waiter's statement ends after two seconds, and is sent again. So the
// price is also one statement each two seconds for each process that waits, and the place in the
// server's queue. The readTimeout of the driver must be longer than three seconds.
//
// Clients with and without the option exclude each other. Clients without it rarely get the lock
// while others wait in the server. A [Table] of PostgreSQL ignores the option. For other databases
// and kinds the error matches [ErrUnsupported].
func WithBlockingWait() Option { return func(o *options) { o.blocks = true } }

// WithBackoff sets how long a waiter pauses before it asks again: atLeast at first, then half as
// much again each time, up to eight times atLeast. While the lock does not change hands, as far as
// the database tells, the pauses grow to a fiftieth of that time, up to atMost. A waiter that sees
// other owners get the lock asks more often, with pauses down to four times atLeast. So no waiter
// asks less often than new waiters. Each pause is shortened at random, by a half at most. With
// [WithListener], pauses begin with atMost once the client listens, and grow by half up to the
// interval of [lease.WithPoll].
//
// With the defaults, [DefaultMinBackoff] and [DefaultMaxBackoff], a waiting process asks 62 to 125
// times a second, with two statements each time. It asks 250 times a second at most, after the
// first 25 ms, and 20 times at most if nobody else has had the lock for five seconds. For an
// [Advisory] of PostgreSQL and a [Row], the database does not tell which owner has the lock, so the
// last limit applies.
func WithBackoff(atLeast, atMost time.Duration) Option {
	return func(o *options) { o.min, o.max = atLeast, atMost }
}

// WithRequestTimeout sets how long the database may take to answer, [DefaultRequestTimeout] if not
// given. The time includes the wait for a connection of the pool. It should be a sixth of the lease
// at most, and half of the release timeout. A renewal is not given up while its answer can still
// keep the hold; after d the client also sends it on another connection.
func WithRequestTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithKey sets the 64-bit key by which PostgreSQL knows the lock called name in an [Advisory],
// to exclude other programs. Different names with the same key are the same lock to the server.
func WithKey(key func(name string) int64) Option {
	return func(o *options) { o.key, o.renamed = key, true }
}

func newOptions(opts []Option) options {
	o := options{
		table:   DefaultTable,
		min:     DefaultMinBackoff,
		max:     DefaultMaxBackoff,
		timeout: DefaultRequestTimeout,
		key:     keyOf,
	}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// check returns an error if the options are of no use, when the dialect is known.
func (o *options) check() error {
	switch {
	case o.min <= 0 || o.max < o.min:
		return fmt.Errorf("sqllock: backoff from %v to %v: more than 0, and in this order, is allowed", o.min, o.max)
	case o.timeout < time.Millisecond:
		return fmt.Errorf("sqllock: request timeout %v: at least 1ms is allowed", o.timeout)
	case o.wait != 0 && o.wait < 10*time.Millisecond:
		return fmt.Errorf("sqllock: wait of a queue %v: at least 10ms is allowed", o.wait)
	case o.key == nil:
		return fmt.Errorf("sqllock: option WithKey: %w", locks.ErrNilFunc)
	case o.listen != nil && o.dialect != Postgres:
		return fmt.Errorf("sqllock: listener on %v: %w", o.dialect, ErrUnsupported)
	case o.blocks && o.dialect != Postgres && (o.dialect != MySQL || !o.sessions):
		return fmt.Errorf("sqllock: blocking wait on %v: %w: the waiters of an Advisory have it on PostgreSQL, MySQL and "+
			"MariaDB, those of a Row on PostgreSQL", o.dialect, ErrUnsupported)
	}
	return nil
}

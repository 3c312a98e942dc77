package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

var (
	// ErrNoTable reports that the tables are not there: see CreateSchema, and [Schema].
	ErrNoTable = errors.New("sqllock: no such table")

	// ErrUnsupportedTopology reports that successive statements of one connection were carried out by different sessions of the
	// server, as behind a pooler that hands sessions out by statement or transaction. A lock of a session is nobody's there.
	ErrUnsupportedTopology = errors.New("sqllock: one connection is not one session of the server")

	// ErrUnsupported reports a kind of lock that the database does not have.
	ErrUnsupported = errors.New("sqllock: the database has no such locks")

	// ErrTimeout reports that the database did not answer in time, or that the pool had no connection to spare: see
	// [WithRequestTimeout].
	ErrTimeout = errors.New("sqllock: no answer in time")

	errNilDB = errors.New("sqllock: nil *sql.DB")
)

const (
	// DefaultTable is the table of a [Table], and what those of its queue and of a [Row] begin with.
	DefaultTable = "sql_locks"
	// DefaultRequestTimeout is for how long the database may take to answer.
	DefaultRequestTimeout = 2 * time.Second
	// DefaultMinBackoff and DefaultMaxBackoff are how long a waiter pauses before it asks again.
	DefaultMinBackoff = 2 * time.Millisecond
	DefaultMaxBackoff = 100 * time.Millisecond
	// DefaultQueueWait is for how long a place in a queue is kept for a process that does not ask any more.
	DefaultQueueWait = 30 * time.Second
	// MaxName is how many bytes a lock's name may have.
	MaxName = 255
)

// Option changes how [NewTable], [NewRow] and [NewAdvisory] work. Each ignores what does not concern it.
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
}

// WithDialect says which kind of database it is, where its driver does not tell.
func WithDialect(d Dialect) Option { return func(o *options) { o.dialect = d } }

// WithTable sets the name of the table, [DefaultTable] if not given. It is an identifier of up to 48 ASCII letters, digits and
// underscores, and may have a schema and a dot in front. All clients of a lock have to agree.
func WithTable(name string) Option { return func(o *options) { o.table = name } }

// WithLease sets what is the same for the locks of every store, such as [lease.WithTTL] and [lease.WithLogger].
func WithLease(opts ...lease.Option) Option {
	return func(o *options) { o.lease = append(o.lease, opts...) }
}

// WithQueue has a [Table] give its locks away in the order in which they were asked for, by whatever process. The queue is a table
// as well. A waiter that does not ask for the time wait is dropped from it, because its process died: 30 seconds if wait is
// 0. Clients with and without it exclude each other; those without, and TryLockContext, take a free lock past the queue.
func WithQueue(wait time.Duration) Option {
	return func(o *options) {
		o.fair = true
		if wait != 0 {
			o.wait = wait
		}
	}
}

// WithListener has waiters on PostgreSQL woken by a notification as soon as a lock is released. All clients of a lock should have
// it: one without it notifies nobody. Behind a pooler that shares sessions it is refused with [ErrUnsupportedTopology]. Waiters ask all the same from time to time, by default each five seconds, see [lease.WithPoll].
func WithListener(l Listener) Option { return func(o *options) { o.listen = l } }

// WithBackoff sets how long a waiter pauses before it asks again: atLeast at first, then half as much again each time, up to
// eight times that. Only as long as the lock does not change hands, as far as the database tells, they become longer: a fiftieth
// of that time, up to atMost. Who sees others have it asks more often, down to four times atLeast, so that nobody who has
// waited long asks less often than those who have just come. Each pause is shortened at random by up to a half. With
// [WithListener] pauses grow by half up to that of [lease.WithPoll].
//
// With the defaults, [DefaultMinBackoff] and [DefaultMaxBackoff], a process that waits asks for a lock, with two statements,
// 250 times a second at most but for the first 25 ms, 62 to 125 times usually, and 20 times at most if nobody else has had it
// for five seconds. An [Advisory] of PostgreSQL and a [Row] do not tell who has the lock: there it is as if nobody else had.
func WithBackoff(atLeast, atMost time.Duration) Option {
	return func(o *options) { o.min, o.max = atLeast, atMost }
}

// WithRequestTimeout sets for how long the database may take to answer, [DefaultRequestTimeout] if not given, the wait for a
// connection of the pool included. It should be a sixth of the lease at most, and half of the release timeout. A renewal is not given
// up as long as its answer can keep the hold; it is sent on another connection as well after this time.
func WithRequestTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithKey sets by which key of 64 bits the lock called name is known to PostgreSQL in an [Advisory], so as to exclude other programs.
// Different names with the same key are the same lock to the server.
func WithKey(key func(name string) int64) Option { return func(o *options) { o.key = key } }

func newOptions(opts []Option) options {
	o := options{
		table:   DefaultTable,
		wait:    DefaultQueueWait,
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

// core is what all kinds of locks on one database have in common.
type core struct {
	options
	db    *sql.DB
	names names
	hub   *hub // if there is a listener
	start startCheck

	open context.Context // until the client is closed
	end  context.CancelFunc
	jobs sync.WaitGroup // goroutines that end with it

	waiters waiters
}

func newCore(db *sql.DB, opts []Option) (*core, error) {
	if db == nil {
		return nil, errNilDB
	}
	c := &core{options: newOptions(opts), db: db}
	c.open, c.end = context.WithCancel(context.Background())
	var err error
	if c.dialect == Detect {
		if c.dialect, err = detect(db); err != nil {
			return nil, err
		}
	}
	if c.names, err = tableNames(c.dialect, c.table); err != nil {
		return nil, err
	}
	switch {
	case c.min <= 0 || c.max < c.min:
		return nil, fmt.Errorf("sqllock: backoff from %v to %v", c.min, c.max)
	case c.timeout < time.Millisecond:
		return nil, fmt.Errorf("sqllock: request timeout of %v is shorter than 1ms", c.timeout)
	case c.wait < 10*time.Millisecond:
		return nil, fmt.Errorf("sqllock: a place in the queue is kept for %v, less than 10ms", c.wait)
	case c.key == nil:
		return nil, errors.New("sqllock: nil function for keys")
	case c.listen != nil && c.dialect != Postgres:
		return nil, fmt.Errorf("sqllock: a listener on %v: %w", c.dialect, ErrUnsupported)
	}
	if c.listen != nil {
		c.start.check = c.checkSessions
	}
	return c, nil
}

// request runs f, which sends a request, with the time that one may take. It is repeated while the database says that it was not carried
// out because of somebody else's transaction; if that does not end in time, the error is of class busy. It matches ErrTimeout, too,
// if the last one was given up, so that it may have been carried out.
func (c *core) request(ctx context.Context, f func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var last error
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := f(limited)
		switch {
		case err == nil:
			return nil
		case c.dialect.classify(err) == busy:
			if last = err; sleep(limited, jitter(pause)) {
				continue
			}
			return err
		case limited.Err() == nil || ctx.Err() != nil:
			return err
		case last != nil:
			return fmt.Errorf("%w, which is %v: %w", ErrTimeout, c.timeout, last)
		}
		// Not the error of a context: the caller's has not ended.
		return fmt.Errorf("%w, which is %v", ErrTimeout, c.timeout)
	}
}

// outcome returns what the engine has to know about err.
func (c *core) outcome(err error) error {
	if errors.Is(err, ErrTimeout) {
		return err
	}
	switch c.dialect.classify(err) {
	case refused, busy:
		return marked{err, []error{lease.ErrRefused}}
	case unavailable:
		return marked{err, []error{lease.ErrRefused, lease.ErrUnavailable}}
	case missing:
		return marked{fmt.Errorf("%w: %w", ErrNoTable, err), []error{lease.ErrRefused}}
	case foreign:
		return fmt.Errorf("the table %s has another layout: %w: %w", c.table, locks.ErrForeign, err)
	}
	return err
}

// current is for transactions whose statements see what was committed before they began. In PostgreSQL those of other levels see
// what was committed before the first one, which is the one that takes a lock, began: perhaps not yet what the holder before did, who
// ended just then. In MySQL a lock is taken without that, and SQLite has one writer at a time.
func (c *core) current() *sql.TxOptions {
	if c.dialect == Postgres {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// passing reports whether err, of a database that has answered before, may be over with time.
func (c *core) passing(err error) bool {
	class := c.dialect.classify(err)
	return class == unknown || class == unavailable
}

func (c *core) exec(ctx context.Context, s *statement, args ...any) (n int64, err error) {
	err = c.request(ctx, func(ctx context.Context) error {
		r, err := c.db.ExecContext(ctx, s.text, s.args(args)...)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	return n, err
}

// execSlowly is exec of a statement that may be carried out twice, for as long as ctx lasts: what is late has not failed. The first
// request is not given up; but as its connection may be dead, the statement is sent on others too when the time of a request is over, on one at
// a time.
func (c *core) execSlowly(ctx context.Context, s *statement, args ...any) (n int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		n   int64
		err error
	}
	first, others := make(chan result, 1), make(chan result)
	go func() {
		r, err := c.db.ExecContext(ctx, s.text, s.args(args)...)
		var n int64
		if err == nil {
			n, err = r.RowsAffected()
		}
		first <- result{n, err}
	}()
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	wait, asking := first, false
	for pause := 10 * time.Millisecond; ; {
		select {
		case r := <-wait:
			if r.err == nil || c.dialect.classify(r.err) != busy {
				return r.n, r.err
			}
			wait = nil // another one repeats it
			if !asking {
				timer.Reset(0)
			}
		case <-timer.C:
			asking = true
			go func() {
				n, err := c.exec(ctx, s, args...)
				select {
				case others <- result{n, err}:
				case <-ctx.Done():
				}
			}()
		case r := <-others:
			if r.err == nil || wait == nil || ctx.Err() != nil {
				return r.n, r.err
			}
			asking = false
			timer.Reset(jitter(pause))
			pause = min(2*pause, time.Second)
		}
	}
}

func (c *core) query(ctx context.Context, s *statement, args []any, dest ...any) error {
	return c.request(ctx, func(ctx context.Context) error {
		return c.db.QueryRowContext(ctx, s.text, s.args(args)...).Scan(dest...)
	})
}

// sleep reports whether d has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter returns a random part of d, a half at least.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// checkName returns why name cannot be a lock's.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("sqllock: empty name of a lock")
	case len(name) > MaxName:
		return fmt.Errorf("sqllock: the name of a lock has %d bytes, more than %d: it begins with %.32q", len(name), MaxName, name)
	case !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("sqllock: the name of a lock is no text: %q", name)
	}
	return nil
}

// Lock is a lock of one name and kind: a [lease.Mutex]. One whose name cannot be that of a lock cannot be taken; the
// error says why.
type Lock struct {
	*lease.Mutex
	bad error
}

var _ locks.Leased = (*Lock)(nil)

// For makes holds last for d and end then, see [lease.WithFixedTTL].
func For(d time.Duration) lease.MutexOption { return lease.WithFixedTTL(d) }

func newLock(c *lease.Client, name string, opts []lease.MutexOption) *Lock {
	return &Lock{Mutex: c.Mutex(name, opts...), bad: checkName(name)}
}

// LockContext takes the lock, and waits for it until ctx ends.
func (l *Lock) LockContext(ctx context.Context) error {
	if l.bad != nil {
		return l.bad
	}
	return l.Mutex.LockContext(ctx)
}

// TryLockContext takes the lock if nobody has it. It waits for the database's answer until ctx ends.
func (l *Lock) TryLockContext(ctx context.Context) (bool, error) {
	if l.bad != nil {
		return false, l.bad
	}
	return l.Mutex.TryLockContext(ctx)
}

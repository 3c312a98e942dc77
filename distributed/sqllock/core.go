package sqllock

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// core is the part that all kinds of locks on one database share.
type core struct {
	options
	db    *sql.DB
	names names
	// statements are the statements of the dialect, by their titles.
	statements map[string]*statement
	start      startCheck
	encoding   startCheck // for names that are not ASCII
	unsure     bool       // the driver also says sqldriver.ErrBadConn of a statement that was carried out
	// noticed, if not nil, is called for each notification.
	noticed func(payload string)

	open context.Context // until the client is closed
	end  context.CancelFunc
	jobs adapter.Jobs // goroutines that end with it

	waiters   waiters
	listening sync.Once
	hears     atomic.Bool // the listening is in force
}

func newCore(db *sql.DB, opts []Option) (*core, error) {
	if db == nil {
		return nil, errNilDB
	}
	c := &core{options: newOptions(opts), db: db}
	c.open, c.end = context.WithCancel(context.Background())
	c.start.c, c.encoding.c = c, c
	var err error
	if c.dialect == Detect {
		if c.dialect, err = detect(db); err != nil {
			return nil, err
		}
	}
	c.unsure = c.dialect == Postgres && !strings.HasPrefix(driverOf(db), pgxDriver)
	if c.names, err = tableNames(c.dialect, c.table); err != nil {
		return nil, err
	}
	c.statements = make(map[string]*statement)
	for title := range templates[c.dialect] {
		c.statements[title] = c.statement(title)
	}
	if err = c.check(); err != nil {
		return nil, err
	}
	if c.listen != nil {
		c.start.check = c.start.checkSessions
	}
	if c.dialect == Postgres {
		c.encoding.check = c.encoding.checkEncoding
	}
	return c, nil
}

// request runs f, which sends a request, for as long as a request may take. It repeats f while the
// database says that another transaction was in the way. If the other transaction does not end in
// time, the error is of class busy. The error also matches ErrTimeout if the last request was given
// up and may have been carried out.
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
			if last = err; adapter.Sleep(limited, adapter.Jitter(pause)) {
				continue
			}
			return err
		case limited.Err() == nil || ctx.Err() != nil:
			return err
		case last != nil:
			return fmt.Errorf("%w, which is %v: %w", ErrTimeout, c.timeout, last)
		}
		return c.late()
	}
}

// late returns why a request was given up. The error is not the error of a context, since the
// caller's context has not ended. A request that had a connection has given it back by now.
func (c *core) late() error {
	if s := c.db.Stats(); s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
		err := fmt.Errorf("no free connection in the pool in time, which is %v: all %d are in use", c.timeout, s.InUse)
		return driver.Mark(err, ErrTimeout)
	}
	return fmt.Errorf("%w, which is %v", ErrTimeout, c.timeout)
}

// outcome returns err with the marks that the engine needs.
func (c *core) outcome(err error) error {
	if err == nil || errors.Is(err, ErrTimeout) || errors.Is(err, driver.ErrRefused) {
		return err
	}
	switch class := c.dialect.classify(err); class {
	case busy:
		return classes.Moment.Mark(err)
	case interrupted:
		return classes.Doubt.Mark(err)
	case missing:
		return driver.Mark(fmt.Errorf("%w: %w", ErrNoTable, err), driver.ErrRefused)
	case foreign:
		return fmt.Errorf("table %q has another layout: %w: %w", c.table, locks.ErrForeign, err)
	default:
		return class.Mark(err)
	}
}

// current is for transactions whose statements see what was committed before each of them began. In
// PostgreSQL, statements of other levels see only data that was committed before the first
// statement began. The first statement takes the lock, so the others may miss the work of the
// previous holder. In MySQL a statement that takes a lock takes no snapshot, and SQLite has one
// writer at a time.
func (d Dialect) current() *sql.TxOptions {
	if d == Postgres {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// commit commits tx. In SQLite a transaction goes on after a COMMIT that was refused, such as with
// SQLITE_BUSY. [sql.Tx.Commit] treats the transaction as ended, and gives the connection to others.
func (d Dialect) commit(tx *sql.Tx) error {
	if d != SQLite {
		return tx.Commit()
	}
	_, err := tx.Exec("COMMIT")
	tx.Rollback() // gives the connection back; there is nothing to undo after a commit
	return err
}

// errUndone says that a transaction of the program's own statements was over before its commit. In
// MySQL a deadlock and some statements, such as CREATE TABLE, end the transaction. The server then
// carries the next statements out one by one, and a COMMIT succeeds.
var errUndone = fmt.Errorf("%w: the server has ended the transaction before the commit, by a deadlock "+
	"or because a statement commits by itself: return the errors of all statements", locks.ErrLost)

// mark notes in tx, which has begun, that tx goes on until commitMarked.
func (d Dialect) mark(ctx context.Context, tx *sql.Tx) error {
	if d != MySQL {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SAVEPOINT sqllock")
	return err
}

// commitMarked commits tx, in which the program's statements follow the mark. It returns errUndone
// if tx has ended in between.
func (d Dialect) commitMarked(ctx context.Context, tx *sql.Tx) error {
	if d == MySQL {
		_, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT sqllock")
		if n, _ := number(err); n == noSavepoint {
			return errUndone
		}
		if err != nil {
			return err
		}
	}
	return d.commit(tx)
}

// noSavepoint is the number of MySQL's error for a savepoint that is not there.
const noSavepoint = 1305

// temporary reports whether err, of a database that has answered before, may be temporary.
func (c *core) temporary(err error) bool {
	switch c.dialect.classify(err) {
	case classes.Unclear, classes.Doubt, interrupted, classes.Connection, classes.Moment, classes.Unreached:
		return true
	}
	return false
}

func (c *core) exec(ctx context.Context, s *statement, args ...any) (n int64, err error) {
	err = c.request(ctx, func(ctx context.Context) (err error) {
		n, err = s.exec(ctx, c.db, args...)
		return err
	})
	return n, err
}

// once is exec of a statement that must not be carried out twice. guarded says that a second time
// would change no row.
//
// The pool repeats a statement whose driver says that the connection is bad. lib/pq says so of
// every connection that has ended, also after it has sent the statement. So once takes a connection
// for itself, on which nothing is repeated. Most bad connections died idle, so once sends a guarded
// statement again. If the repetition changes no row, the first statement may have changed it: the
// outcome is unknown.
func (c *core) once(ctx context.Context, guarded bool, f func(ctx context.Context, on database) (int64, error)) (
	n int64, err error) {
	if !c.unsure {
		err = c.request(ctx, func(ctx context.Context) (err error) {
			n, err = f(ctx, c.db)
			return err
		})
		return n, err
	}
	alone := func(ctx context.Context) (int64, error) {
		conn, err := c.db.Conn(ctx)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		return f(ctx, conn)
	}
	var bad error
	tries := c.db.Stats().OpenConnections + 1 // all of the pool may have ended
	err = c.request(ctx, func(ctx context.Context) (err error) {
		for ; tries > 0; tries-- {
			n, err = alone(ctx)
			if !errors.Is(err, sqldriver.ErrBadConn) {
				return err
			}
			if bad = err; !guarded {
				break
			}
		}
		return bad
	})
	if bad != nil && ctx.Err() == nil && (err != nil || n == 0) {
		return 0, fmt.Errorf("outcome unknown: %w", bad) // whatever was said of a later request
	}
	return n, err
}

// queryOnce is query of a statement whose repetition changes nothing: the answer to the repetition
// has the outcome of the first execution. No row is an answer too. Only if the repetition is
// refused, the outcome is unknown.
func (c *core) queryOnce(ctx context.Context, s *statement, args []any, dest ...any) error {
	var none error
	_, err := c.once(ctx, true, func(ctx context.Context, on database) (int64, error) {
		none = nil
		err := s.query(ctx, on, args, dest...)
		if errors.Is(err, sql.ErrNoRows) {
			none, err = err, nil
		}
		return 1, err
	})
	return cmp.Or(err, none)
}

// execSlowly is exec of a statement that may be carried out twice, for as long as ctx lasts: a late
// answer is good. It does not give the first request up. As the connection may be dead, execSlowly
// also sends the statement on other connections, one at a time, when the time of a request is over.
// If one request was answered, and another request may still be carried out, unanswered is true.
func (c *core) execSlowly(ctx context.Context, s *statement, args ...any) (n int64, unanswered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		n   int64
		err error
	}
	first, others := make(chan result, 1), make(chan result, 1) // with room for the only request of each
	go func() {
		n, err := s.exec(ctx, c.db, args...)
		first <- result{n, err}
	}()
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	asking := false
	for pause := 10 * time.Millisecond; ; {
		select {
		case r := <-first:
			if r.err == nil || c.dialect.classify(r.err) != busy {
				return r.n, unanswered || asking, r.err
			}
			first = nil // another request repeats it
			if !asking {
				timer.Reset(0)
			}
		case <-timer.C:
			asking = true
			go func() {
				n, err := c.exec(ctx, s, args...)
				others <- result{n, err}
			}()
		case r := <-others:
			if r.err == nil || first == nil || ctx.Err() != nil {
				return r.n, unanswered || first != nil, r.err
			}
			asking = false
			unanswered = unanswered || !errors.Is(c.outcome(r.err), driver.ErrRefused)
			timer.Reset(adapter.Jitter(pause))
			pause = min(2*pause, time.Second)
		}
	}
}

func (c *core) query(ctx context.Context, s *statement, args []any, dest ...any) error {
	return c.request(ctx, func(ctx context.Context) error {
		return s.query(ctx, c.db, args, dest...)
	})
}

// client returns the client of the engine.
func (c *core) client(store driver.Store, opts []lease.Option) (*lease.Client, error) {
	prefix := ""
	if c.renamed { // the server knows the lock by a key, and two processes may have two names for it
		prefix = "\x00"
	}
	place := fmt.Sprintf("%v %s %T", c.dialect, c.table, store) // db hides its server
	first := []lease.Option{driver.WithErrorPrefix("sqllock"), driver.WithPlace(place, prefix)}
	return lease.New(store, append(first, opts...)...)
}

// close ends the clients of the engine by end, if there are any, and the background goroutines. It
// waits for both until ctx ends.
func (c *core) close(ctx context.Context, end func(ctx context.Context) error) (err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	c.end()
	if end != nil {
		err = end(ctx)
	}
	c.jobs.Close(ctx)
	return err
}

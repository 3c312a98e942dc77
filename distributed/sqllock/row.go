package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// rowLock takes the row, and waits for nobody: how many rows it has taken, and how many there are. PostgreSQL would write into its log each
// time that NOWAIT is in vain, which is often while somebody waits. $1 name.
var rowLock = map[Dialect]string{
	Postgres: `
WITH taken AS (SELECT 1 FROM {rows} WHERE name = $1 FOR UPDATE SKIP LOCKED)
SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM {rows} WHERE name = $1)`,
	MySQL: `SELECT 1, 1 FROM {rows} WHERE name = $1 FOR UPDATE NOWAIT`,
}

const (

	// rowTell tells those who listen, when the transaction is committed. $1 channel, $2 name.
	rowTell = `SELECT pg_notify($1, $2)`
)

var rowMake = map[Dialect]string{
	Postgres: `INSERT INTO {rows} (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`,
	MySQL:    `INSERT IGNORE INTO {rows} (name) VALUES ($1)`,
}

// rowKind takes a row for a transaction.
type rowKind struct {
	c          *core
	lock, make *statement
	begin      string
	tell       bool
}

func newRowKind(c *core) *rowKind {
	r := c.names.replacements(c.dialect)
	k := &rowKind{
		c:     c,
		lock:  c.dialect.statement(rowLock[c.dialect], r...),
		make:  c.dialect.statement(rowMake[c.dialect], r...),
		begin: "START TRANSACTION", // BEGIN is something else to MariaDB if sql_mode is ORACLE
		tell:  c.listen != nil,
	}
	if c.dialect == SQLite {
		k.begin = "BEGIN IMMEDIATE"
	}
	return k
}

// errTaken reports that somebody else has the row. It is of class busy.
var errTaken = errors.New("sqllock: somebody else has the row")

// ask takes the row of a lock in a transaction. The error is sql.ErrNoRows if there is no row.
func (k *rowKind) ask(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, name string) error {
	var taken, there int
	err := q.QueryRowContext(ctx, k.lock.text, k.lock.args([]any{name})...).Scan(&taken, &there)
	switch {
	case err != nil || taken > 0:
		return err
	case there > 0:
		return errTaken
	}
	return sql.ErrNoRows
}

// take begins a transaction and takes the row. In SQLite the transaction is the lock. It does without [sql.Tx], which would be rolled
// back at the end of ctx, and ctx is only the acquisition's.
func (k *rowKind) take(ctx context.Context, conn *sql.Conn, name string) (held bool, id int64, clean bool, err error) {
	if k.c.dialect == SQLite {
		return k.takeAll(ctx, conn)
	}
	if _, err = conn.ExecContext(ctx, k.begin); err != nil {
		return false, 0, false, err
	}
	for try := 1; ; try++ {
		if err = k.ask(ctx, conn, name); err == nil {
			return true, 0, true, nil
		}
		class := k.c.dialect.classify(err)
		if none := errors.Is(err, sql.ErrNoRows); !none && class == unknown {
			return false, 0, false, err
		} else if _, failed := conn.ExecContext(ctx, "ROLLBACK"); failed != nil {
			return false, 0, false, failed
		} else if class == busy {
			return false, 0, true, nil
		} else if !none || try > 3 {
			return false, 0, true, err
		}
		if _, err = conn.ExecContext(ctx, k.make.text, k.make.args([]any{name})...); err == nil {
			_, err = conn.ExecContext(ctx, k.begin)
		}
		switch {
		case err == nil:
		case k.c.dialect.classify(err) == busy:
			return false, 0, true, nil
		default:
			return false, 0, false, err
		}
	}
}

// takeAll takes the whole of a SQLite database, without the waiting that the connection may be set to.
func (k *rowKind) takeAll(ctx context.Context, conn *sql.Conn) (held bool, id int64, clean bool, err error) {
	err = withoutWaiting(ctx, conn, func() error {
		_, err := conn.ExecContext(ctx, k.begin)
		return err
	})
	switch {
	case err == nil:
		return true, 0, true, nil
	case k.c.dialect.classify(err) == busy:
		return false, 0, true, nil
	}
	return false, 0, false, err
}

// withoutWaiting runs f on a connection to SQLite that does not wait for a lock, whatever its busy_timeout is.
func withoutWaiting(ctx context.Context, conn *sql.Conn, f func() error) error {
	var timeout int64
	if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&timeout); err != nil {
		return err
	}
	if timeout <= 0 {
		return f()
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	err := f()
	if _, failed := conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", timeout)); failed != nil {
		return failed // not busy: the connection is no good
	}
	return err
}

func (k *rowKind) alive(ctx context.Context, conn *sql.Conn, name string, id int64) error {
	var one int
	return conn.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

func (k *rowKind) free(ctx context.Context, conn *sql.Conn, name string, id int64) (bool, error) {
	if k.tell {
		if _, err := conn.ExecContext(ctx, rowTell, k.c.names.channel, name); err != nil {
			return false, err
		}
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err == nil, err
}

// Row has locks that are rows, each locked by SELECT ... FOR UPDATE in a transaction and free when that ends, whatever ends it. It is a
// [locks.Provider], and has [Row.Do] for work in the very transaction, which is what it is best at. The locks have no fencing token. It is
// safe for concurrent use; [Row.Close] ends it.
//
// A holder pins a connection of the pool, with a transaction that does nothing, until it unlocks. A waiter pins none: it asks again
// after a pause, or on a notification. A pool needs more connections than there are locks held. Behind a pooler that
// hands out sessions by transaction the locks are as good as without it.
//
// SQLite has no locks on rows. There a Row takes the database for writing, as BEGIN IMMEDIATE does: all its locks are one lock, and
// nobody else writes while one is held. Whoever holds one and waits for another waits for ever.
type Row struct {
	sessionLocks
	kind *rowKind
}

var _ locks.Provider = (*Row)(nil)

// NewRow returns a Row in db. It never closes db, and has to be closed before db is.
func NewRow(db *sql.DB, opts ...Option) (*Row, error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	k := newRowKind(c)
	s, err := newSessionLocks(c, k, c.lease)
	if err != nil {
		return nil, err
	}
	return &Row{s, k}, nil
}

// CreateSchema makes the tables that are not there: those of [Schema].
func (r *Row) CreateSchema(ctx context.Context) error { return r.c.createSchema(ctx) }

// Do runs fn in a transaction that holds the lock called name, and commits it; if fn returns an error or panics, it is rolled back. It waits
// for the lock until ctx ends, and fn's transaction ends with ctx too. The result matches [locks.ErrLost] if the transaction could not be
// committed, since the connection failed or the server has ended it: then the work was not done, but for the one case that no client can tell,
// that just the answer to the commit was lost.
//
// This is as safe as the database is: there is no lease, and nothing that fn did in tx stays if the lock was lost. It excludes the holders of
// [Row.Lock]. It is not reentrant: who holds the lock already gets [locks.ErrDeadlock].
//
// In PostgreSQL the isolation level is READ COMMITTED, whatever the default is: at others the transaction would see the data as they were
// before it had the lock, and so perhaps not what the holder before has done.
func (r *Row) Do(ctx context.Context, name string, fn func(tx *sql.Tx) error) (err error) {
	fail := func(err error) error { return fmt.Errorf("sqllock: Do of %q: %w", name, err) }
	switch {
	case ctx == nil:
		return fail(locks.ErrNilContext)
	case fn == nil:
		return fail(errors.New("nil function"))
	}
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := r.lc.Mutex(name).Hold(ctx); err == nil {
		return fail(locks.ErrDeadlock)
	}
	tx, done, err := r.begin(ctx, name)
	if err != nil {
		return fail(err)
	}
	defer done()
	defer tx.Rollback() // also if fn panics; nothing after a commit
	if err := fn(tx); err != nil {
		return err
	}
	if r.kind.tell {
		if _, err := tx.ExecContext(ctx, rowTell, r.c.names.channel, name); err != nil {
			return fail(r.notCommitted(ctx, err))
		}
	}
	if err := tx.Commit(); err != nil {
		return fail(r.notCommitted(ctx, err))
	}
	return nil
}

// notCommitted returns what the failure of a transaction, or of its end, means.
func (r *Row) notCommitted(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case r.c.dialect.classify(err) == unknown && !errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("%w: %w", locks.ErrLost, err)
	}
	return err
}

func ended(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// begin returns a transaction that has the row. While somebody else has it, it keeps no connection. As with [lease.Mutex.LockContext], a
// database that cannot be reached is an error at first, and later one more thing to wait for.
func (r *Row) begin(ctx context.Context, name string) (*sql.Tx, func(), error) {
	var watch lease.Watch
	defer func() {
		if watch != nil {
			watch.Close()
		}
	}()
	var down error // why the database could not be reached, the last time
	over := func() error {
		if down != nil {
			return fmt.Errorf("%w; the database could not be reached: %w", ended(ctx), down)
		}
		return ended(ctx)
	}
	if err := r.c.fit(ctx); err != nil && ctx.Err() == nil {
		return nil, nil, err
	}
	for {
		switch {
		case ctx.Err() != nil:
			return nil, nil, over()
		case r.c.open.Err() != nil:
			return nil, nil, locks.ErrClosed
		}
		tx, done, err := r.try(ctx, name)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, nil, over()
		case err != nil && (watch == nil || !r.c.passing(err)):
			return nil, nil, r.c.outcome(err)
		case tx != nil:
			return tx, done, nil
		}
		down = err
		if watch == nil {
			watch = r.c.watch(name)
			continue
		}
		timer := time.NewTimer(quiet)
		select {
		case <-watch.C():
		case <-timer.C:
		case <-ctx.Done():
		case <-r.c.open.Done():
		}
		timer.Stop()
	}
}

// try returns a transaction that has the row and lasts until done is called or ctx ends, or nil if somebody else has the row.
func (r *Row) try(ctx context.Context, name string) (_ *sql.Tx, done func(), err error) {
	conn, err := r.c.db.Conn(ctx) // the pool's connections may have work of others to do, for as long as that takes
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(r.c.timeout, cancel)
	spoilt := false
	defer func() {
		if done != nil {
			return
		}
		if !late.Stop() && err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w, which is %v: %v", ErrTimeout, r.c.timeout, err) // not the error of a context: the caller's has not ended
		}
		cancel()
		if spoilt {
			discard(conn)
		} else {
			conn.Close()
		}
	}()
	k := r.kind
	for try := 1; ; try++ {
		tx, err := conn.BeginTx(ctx, k.c.current())
		if err != nil {
			return nil, nil, err
		}
		if r.c.dialect == SQLite {
			// Whatever writes takes the database. This changes nothing.
			take := k.c.dialect.statement(`DELETE FROM {rows} WHERE name = $1`, k.c.names.replacements(SQLite)...)
			err = withoutWaiting(ctx, conn, func() error {
				_, err := tx.ExecContext(ctx, take.text, take.args([]any{name})...)
				return err
			})
			spoilt = err != nil && k.c.dialect.classify(err) != busy // it may be set not to wait
		} else {
			err = k.ask(ctx, tx, name)
		}
		if err == nil && late.Stop() {
			return tx, func() { cancel(); conn.Close() }, nil
		}
		tx.Rollback()
		switch {
		case err == nil:
			return nil, nil, ctx.Err() // too late
		case k.c.dialect.classify(err) == busy:
			return nil, nil, nil
		case !errors.Is(err, sql.ErrNoRows) || try > 3:
			return nil, nil, err
		}
		if _, err := conn.ExecContext(ctx, k.make.text, k.make.args([]any{name})...); err != nil {
			if k.c.dialect.classify(err) == busy {
				return nil, nil, nil
			}
			return nil, nil, err
		}
	}
}

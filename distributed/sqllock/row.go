package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/keyed"
)

// errTaken reports that another transaction has the row. It is of class busy.
var errTaken = errors.New("another transaction has the row")

// ask takes the row of a lock in the connection's transaction. The error is sql.ErrNoRows if the
// row is missing, and errTaken if another transaction has it. In the latter case wait, if not nil,
// waits for the row.
func (r *Row) ask(ctx context.Context, conn *sql.Conn, name string, wait waitForRow) error {
	lock := r.c.statements["lock row"]
	if r.c.dialect == SQLite {
		return withoutWaiting(ctx, conn, func() error {
			_, err := lock.exec(ctx, conn, name)
			return err
		})
	}
	var taken, there, session int64
	err := lock.query(ctx, conn, []any{name}, &taken, &there, &session)
	switch {
	case err != nil || taken > 0:
		return err
	case there == 0:
		return sql.ErrNoRows
	case wait != nil:
		return wait(session)
	}
	return errTaken
}

// waitForRow waits until the transaction of a session has the row.
type waitForRow func(session int64) error

// acquire begins a transaction on conn and takes the row in it. It waits for another transaction
// only by wait. tx is nil if another transaction has the row. With an error, clean says that the
// connection is as it was before. Without clean the connection is unusable.
func (r *Row) acquire(ctx context.Context, conn *sql.Conn, name string, wait waitForRow) (
	tx *sql.Tx, clean bool, err error) {
	for try := 1; ; try++ {
		if tx, err = conn.BeginTx(ctx, r.c.dialect.current()); err != nil {
			return nil, false, err
		}
		if err = r.ask(ctx, conn, name, wait); err == nil {
			err = r.c.dialect.mark(ctx, tx)
		}
		if err == nil {
			return tx, true, nil
		}
		failed := tx.Rollback()
		none, class := errors.Is(err, sql.ErrNoRows), r.c.dialect.classify(err)
		switch {
		case !none && (class == classes.Unclear || class == classes.Doubt || class == interrupted):
			return nil, false, err
		case failed != nil:
			return nil, false, failed
		case class != busy && (!none || try > 3):
			return nil, r.c.dialect != SQLite, err // a SQLite connection may be left with busy_timeout 0
		}
		if class != busy { // there is no row yet
			err = r.makeRow(ctx, conn, name)
			class = r.c.dialect.classify(err)
		}
		switch {
		case class == busy:
			return nil, true, nil
		case err != nil:
			return nil, false, err
		}
	}
}

// makeRow makes the row of a lock. In MySQL, the INSERT of a row that another client has just made
// waits for the holder of the lock. Therefore a transaction asks for the row first, without
// waiting. If the row is missing, no other transaction can make it until this transaction has
// ended.
func (r *Row) makeRow(ctx context.Context, conn *sql.Conn, name string) error {
	exec := func(statement string, args ...any) error {
		_, err := conn.ExecContext(ctx, statement, args...)
		return err
	}
	make := func() error {
		_, err := r.c.statements["make row"].exec(ctx, conn, name)
		return err
	}
	if r.c.dialect != MySQL {
		return make()
	}
	// In MariaDB, BEGIN begins no transaction if sql_mode is ORACLE.
	for _, s := range []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION"} {
		if err := exec(s); err != nil {
			return err
		}
	}
	err := r.ask(ctx, conn, name, nil)
	if errors.Is(err, sql.ErrNoRows) {
		err = make()
	}
	if err == nil {
		return exec("COMMIT")
	}
	if failed := exec("ROLLBACK"); failed != nil {
		return failed
	}
	return err
}

// withoutWaiting runs f on a connection to SQLite that does not wait for a lock, whatever its
// busy_timeout is.
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
	again := fmt.Sprintf("PRAGMA busy_timeout = %d", timeout)
	if _, failed := conn.ExecContext(context.WithoutCancel(ctx), again); failed != nil {
		return failed // not busy: the connection is unusable
	}
	return err
}

// Row has locks that are rows, for work that is done in one transaction. SELECT ... FOR UPDATE
// locks the row in that transaction. The end of the transaction frees the row, whatever the cause.
// [Row.Do] does the work. A Row is safe for concurrent use; [Row.Close] ends it.
//
// The work pins a connection of the pool. A waiter pins no connection: it asks again after a pause
// or on a notification. A pool needs more connections than locks are held. With [WithBlockingWait]
// a waiter pins a connection too. A pooler that gives its sessions out by transaction is harmless
// without [WithBlockingWait] and [WithListener].
//
// SQLite cannot lock rows. There a Row locks the database for writing, as BEGIN IMMEDIATE does: all
// its locks are one lock, and nobody else writes while the lock is held.
//
// A Row must not be copied.
type Row struct {
	c       *core
	working sync.Map // of a doer, its *sql.Tx
	// gate, if not nil, has the turns to wait in the server. The queue of package lease cannot be
	// the gate. Its waiter asks the store again after each notice, but the waiter of a Row stays in
	// one transaction until the server gives it the row.
	gate *keyed.Mutexes[string]
}

// doer is an owner that is inside of [Row.Do].
type doer struct {
	owner locks.Owner
	name  string // empty in SQLite, where all locks are one
}

// NewRow returns a Row in db. The Row never closes db, and must be closed before db is. In MySQL
// and MariaDB the first acquisition also asks for the engine of the table, once for all callers.
func NewRow(db *sql.DB, opts ...Option) (*Row, error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	r := &Row{c: c}
	if c.blocks {
		r.gate = keyed.New[string](locks.FIFO)
		c.start.check = c.start.checkSessions
	}
	if c.dialect == MySQL {
		c.start.check = func(ctx context.Context) error {
			return c.request(ctx, func(ctx context.Context) error { return c.start.checkEngine(ctx, c.names.rows, true) })
		}
	}
	return r, nil
}

// CreateSchema makes the tables of [Schema] that are missing.
func (r *Row) CreateSchema(ctx context.Context) error { return r.c.createSchema(ctx) }

// Close makes all waiters return [locks.ErrClosed]. The work that [Row.Do] runs at the time goes
// on.
func (r *Row) Close(ctx context.Context) error {
	return r.c.close(ctx, nil)
}

// Do runs fn in a transaction that holds the lock called name, and commits it. If fn returns an
// error or panics, or the database refuses the commit, such as with SQLITE_BUSY, the transaction is
// rolled back. Do waits for the lock until ctx ends, and ctx also ends the transaction. The error
// matches [locks.ErrLost] if the transaction could not be committed, because the connection failed
// or the server has ended it. The work is then undone, except in a case that no client can
// recognise: only the answer to the commit was lost.
//
// Do is as safe as the database: it needs no lease, and if the lock was lost, all that fn did in tx
// is undone. Do is not reentrant: if the caller's owner is already inside of Do with the lock, the
// error matches [locks.ErrDeadlock] at once.
//
// In MySQL and MariaDB a deadlock ends the transaction and frees the lock. If fn goes on all the
// same, the server carries each further statement out by itself, and does not undo it. Do then
// returns an error matching [locks.ErrLost]. So fn should return the errors of all statements. The
// same is true of statements that commit by themselves, such as CREATE TABLE.
//
// In PostgreSQL the isolation level is READ COMMITTED, whatever the default is. At other levels the
// transaction would see the data from before it had the lock, and might miss the work of the
// previous holder.
func (r *Row) Do(ctx context.Context, name string, fn func(tx *sql.Tx) error) error {
	fail := func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("sqllock: Do with lock %q: %w", name, adapter.OfStore(ctx, adapter.Explain(ctx, err)))
	}
	switch {
	case ctx == nil:
		return fail(locks.ErrNilContext)
	case fn == nil:
		return fail(locks.ErrNilFunc)
	}
	if err := checkName(name); err != nil {
		return fail(err)
	}
	me := doer{locks.CurrentOwner(ctx), name}
	if r.c.dialect == SQLite {
		me.name = ""
	}
	if _, inside := r.working.Load(me); inside {
		return fail(locks.ErrDeadlock)
	}
	failed, err := r.work(adapter.Quiet(ctx), me, name, fn)
	if failed != nil {
		return failed
	}
	return fail(err)
}

// work is Do for the owner me, inside of its transaction. The error failed is the error of fn. No
// method of the caller's context but Value is called while me has its turn, or the lock.
func (r *Row) work(ctx context.Context, me doer, name string, fn func(tx *sql.Tx) error) (failed, err error) {
	tx, done, err := r.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer done()
	defer tx.Rollback() // also if fn panics; nothing after a commit
	r.working.Store(me, tx)
	defer r.working.CompareAndDelete(me, tx) // another transaction's entry stays, if this transaction was lost
	if failed = fn(tx); failed != nil {
		return failed, nil
	}
	if r.c.listen != nil {
		_, err = r.c.statements["notify"].exec(ctx, tx, r.c.names.channel, name)
	}
	if err == nil {
		err = r.c.dialect.commitMarked(ctx, tx)
	}
	return nil, r.notCommitted(ctx, err)
}

// notCommitted returns the error of Do for a failure of the transaction, or of its end.
func (r *Row) notCommitted(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return adapter.Ended(ctx)
	case errors.Is(err, sql.ErrTxDone), err == errUndone:
		return err
	}
	switch r.c.dialect.classify(err) {
	case classes.Unclear, classes.Doubt, interrupted:
		return fmt.Errorf("%w: %w", locks.ErrLost, err)
	}
	return err
}

// begin returns a transaction that has the row. It keeps no connection while another transaction
// has the row. As with [lease.Mutex.LockContext], an unreachable database is an error of the first
// request; later requests wait for the database.
func (r *Row) begin(ctx context.Context, name string) (*sql.Tx, func(), error) {
	leave, err := r.takeTurn(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	w := rowWaiter{r: r, name: name}
	defer w.close()
	for {
		if err := w.endCause(ctx); err != nil {
			return nil, nil, err
		}
		tx, done, err := w.request(ctx)
		if tx != nil {
			return tx, done, nil
		}
		if err != nil {
			if err := w.onError(ctx, err); err != nil {
				return nil, nil, err
			}
		}
		w.down = err
		w.wait(ctx)
	}
}

// rowWaiter is a call of [Row.Do] that has not got the row yet:
//
//	state              watch  blocked  an unavailable database is
//	asks first         nil    false    an error
//	waits, asks again  set    any      waited for
//	waits in server    any    true     waited for
type rowWaiter struct {
	r       *Row
	name    string
	watch   driver.Watch // from the first refusal on
	blocked bool         // a request has waited in the server
	down    error        // why the database was not available at the last request, or nil
}

// request asks for the row once. tx is nil if another transaction has the row.
func (w *rowWaiter) request(ctx context.Context) (tx *sql.Tx, done func(), err error) {
	if err := w.r.c.fit(ctx, w.name); err != nil {
		return nil, nil, err
	}
	return w.r.try(ctx, w.name, &w.blocked)
}

// endCause returns why the call ends without the row, or nil while the call goes on.
func (w *rowWaiter) endCause(ctx context.Context) error {
	switch {
	case ctx.Err() != nil && w.down != nil:
		return fmt.Errorf("%w; the database was not available: %w", adapter.Ended(ctx), w.down)
	case ctx.Err() != nil:
		return adapter.Ended(ctx)
	case w.r.c.open.Err() != nil:
		return locks.ErrClosed
	}
	return nil
}

// onError returns the error of the call after a request has failed, or nil if the call waits on.
func (w *rowWaiter) onError(ctx context.Context, failed error) error {
	if ctx.Err() != nil || w.blocked {
		if err := w.endCause(ctx); err != nil {
			return err
		}
	}
	err := w.r.c.outcome(failed)
	waits := w.watch != nil || w.blocked
	switch {
	case errors.Is(err, locks.ErrForeign):
		return err
	case errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, driver.ErrUnreachable):
		return nil
	case waits && w.r.c.temporary(err):
		return nil
	}
	return err
}

// wait waits for a notification of the row, or until it is time to ask without a notification. The
// first call of wait only begins to watch, since the row may have become free before.
func (w *rowWaiter) wait(ctx context.Context) {
	if w.watch == nil {
		w.watch = w.r.c.watch(driver.HoldID{Name: w.name})
		return
	}
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	select {
	case <-w.watch.C():
	case <-timer.C:
	case <-ctx.Done():
	case <-w.r.c.open.Done():
	}
}

// close ends the watch.
func (w *rowWaiter) close() {
	if w.watch != nil {
		w.watch.Close()
	}
}

// takeTurn waits until no other goroutine of this client waits for the lock, if its waiters wait in
// the server. It returns the function that ends the turn.
func (r *Row) takeTurn(ctx context.Context, name string) (end func(), err error) {
	if r.gate == nil {
		return func() {}, nil
	}
	gate, owner := r.gate.Of(name), locks.NewOwner()
	err = adapter.Until(ctx, r.c.open, func(ctx context.Context) error {
		return gate.LockContext(locks.WithOwner(ctx, owner))
	})
	return func() { _ = gate.UnlockContext(adapter.As(owner)) }, err // the owner holds the gate
}

// try returns a transaction that has the row, or nil if another transaction has the row. The
// transaction lasts until done is called or ctx ends. try sets waited when it begins to wait in the
// server.
func (r *Row) try(ctx context.Context, name string, waited *bool) (*sql.Tx, func(), error) {
	conn, err := r.c.db.Conn(ctx) // as long as the other work of the pool takes
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(r.c.timeout, cancel)
	var wait waitForRow
	if r.gate != nil && r.c.roomy() {
		wait = func(session int64) error {
			if !late.Stop() {
				return ctx.Err()
			}
			defer late.Reset(r.c.timeout)
			defer context.AfterFunc(r.c.open, cancel)()
			defer r.c.lookAfter(session, cancel)()
			*waited = true
			var one int
			return r.c.statements["wait for row"].query(ctx, conn, []any{name}, &one)
		}
	}
	tx, clean, err := r.acquire(ctx, conn, name, wait)
	inTime := late.Stop()
	if tx != nil && inTime {
		return tx, func() { cancel(); conn.Close() }, nil
	}
	switch {
	case tx != nil:
		tx.Rollback()
		err = ctx.Err()
	case err != nil && !inTime && ctx.Err() != nil:
		// Not the error of a context: the caller's context has not ended.
		err = fmt.Errorf("%w, which is %v: %v", ErrTimeout, r.c.timeout, err)
	}
	cancel()
	if err != nil && !clean {
		discard(conn)
	} else {
		conn.Close()
	}
	return nil, nil, err
}

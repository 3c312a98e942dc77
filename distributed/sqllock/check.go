package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// startCheck asks the database, before the first acquisition of a client, whether its locks can be
// kept there. All callers share one check. Its requests have their own time limits. The check goes
// on if the caller that began it leaves.
type startCheck struct {
	c     *core
	check func(ctx context.Context) error // nil: there is nothing to check

	mu      sync.Mutex
	verdict *verdict // the check that is under way, or the last check if its result is to stay
}

type verdict struct {
	done chan struct{} // closed when err is set
	err  error
}

// fit returns an error unless locks can be kept in the database. An acquisition calls it first.
func (s *startCheck) fit(ctx context.Context) error {
	if s.check == nil {
		return nil
	}
	s.mu.Lock()
	v := s.verdict
	if v == nil {
		v = &verdict{done: make(chan struct{})}
		if !s.c.jobs.Go(func() { s.judge(v) }) {
			s.mu.Unlock()
			return errClosing
		}
		s.verdict = v
	}
	s.mu.Unlock()
	select {
	case <-v.done:
		return v.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fit returns an error unless the lock called name can be kept in the database. An acquisition by a
// name in a table calls it first.
func (c *core) fit(ctx context.Context, name string) error {
	if err := c.start.fit(ctx); err != nil {
		return err
	}
	for _, b := range []byte(name) {
		if b >= utf8.RuneSelf {
			return c.encoding.fit(ctx)
		}
	}
	return nil
}

// checkEncoding returns an error if PostgreSQL takes the bytes of a name for text of another
// encoding. In other sessions the name would be other text, and so another lock.
func (s *startCheck) checkEncoding(ctx context.Context) error {
	var encoding string
	if err := s.c.query(ctx, s.c.statements["encoding"], nil, &encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return errMode("client_encoding", "UTF8, for names that are not ASCII,", encoding)
	}
	return nil
}

// errClosing ends an acquisition that comes with the end of its client.
var errClosing = driver.Mark(locks.ErrClosed, driver.ErrRefused)

// judge runs the check. Success is kept. An error that reports a pooler is kept too, since the
// pooler may be hidden the next time. After any other error the next caller begins anew.
func (s *startCheck) judge(v *verdict) {
	defer close(v.done)
	if err := s.check(s.c.open); err != nil {
		if v.err = s.c.notAcquired(err); s.c.open.Err() != nil {
			v.err = errClosing
		}
		if !errors.Is(err, ErrUnsupportedTopology) {
			s.mu.Lock()
			s.verdict = nil
			s.mu.Unlock()
		}
	}
}

// notAcquired returns err with the marks that the engine needs. After err the lock is surely not
// held: it was not asked for, or has ended with the connection.
func (c *core) notAcquired(err error) error {
	err = c.outcome(err)
	switch {
	case errors.Is(err, driver.ErrRefused):
		return err
	case errors.Is(err, locks.ErrForeign), errors.Is(err, driver.ErrLogin), errors.Is(err, driver.ErrUnavailable):
		return driver.Mark(err, driver.ErrRefused)
	}
	return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
}

var (
	errNotUnique = fmt.Errorf("column name is not unique, or not of type VARBINARY(%d)", MaxName)
	errEngine    = errors.New("its engine has no transactions")
	errUnlisted  = errors.New("the server does not list the table")
)

// modeError refuses sessions with a setting that changes what our statements mean.
type modeError struct{ text string }

func (e *modeError) Error() string { return e.text }

// errMode returns the error of a setting that does not have the required value.
func errMode(setting, has, is string) error {
	return &modeError{fmt.Sprintf("%s has to be %s in the sessions of this pool: it is %s", setting, has, is)}
}

// modes are the settings of a session of MySQL that change what our statements mean, in the order
// of the columns {modes} of a statement. Our statements mean the same with any value of other
// settings.
type modes struct {
	autocommit         int64
	completion         string
	sqlMode            string
	limit              string
	uniqueChecks       int64
	client, connection string // character sets
	ahead              int64  // seconds from the time of statements to the time of the clock
}

func (m *modes) dest() []any {
	return []any{
		&m.autocommit, &m.completion, &m.sqlMode, &m.limit, &m.uniqueChecks, &m.client, &m.connection, &m.ahead,
	}
}

// modesOfMySQL are the columns {modes}. SYSDATE is the time of the clock also if the variable
// timestamp is set.
const modesOfMySQL = `@@autocommit, @@completion_type, @@sql_mode, @@sql_select_limit, @@unique_checks,
	@@character_set_client, @@character_set_connection, TIMESTAMPDIFF(SECOND, NOW(), SYSDATE())`

// check returns an error unless the statements mean what they say. transacts says that all of them
// are in transactions that are begun and committed explicitly.
func (m *modes) check(transacts bool) error {
	const frozen = 60 // seconds that no statement takes
	switch {
	case m.autocommit == 0 && !transacts: // nothing would be committed
		return errMode("autocommit", "on", "off")
	case m.completion != "NO_CHAIN": // after a commit the connection is in another transaction, or closed
		return errMode("completion_type", "NO_CHAIN", m.completion)
	case strings.Contains(m.sqlMode, "EMPTY_STRING_IS_NULL"): // the owner of a free lock, and other texts, are empty
		return &modeError{"sql_mode must not have EMPTY_STRING_IS_NULL in the sessions of this pool"}
	case m.limit != "18446744073709551615": // holds would be missing in the answer to a renewal
		return errMode("sql_select_limit", "DEFAULT", m.limit)
	case m.uniqueChecks == 0: // two rows may have one name
		return errMode("unique_checks", "on", "off")
	case m.client != m.connection: // one name would be other bytes than in other sessions
		return errMode("character_set_connection", m.client+", as character_set_client", m.connection)
	case m.ahead > frozen || m.ahead < -frozen: // leases would never end
		return errMode("timestamp", "DEFAULT", fmt.Sprintf("%d s behind the clock", m.ahead))
	}
	return nil
}

// checkModes asks for the modes, in MySQL. checkModes is for kinds that need no other check.
func (s *startCheck) checkModes(ctx context.Context) error {
	var m modes
	err := s.c.query(ctx, s.c.statements["modes"], nil, m.dest()...)
	if err != nil {
		return err
	}
	return m.check(false)
}

// checkEngine returns an error unless the engine of a table has transactions, and no mode of the
// session changes what our statements mean. Without transactions MySQL carries all statements out,
// locks nothing until a commit, and undoes nothing.
func (s *startCheck) checkEngine(ctx context.Context, table string, transacts bool) error {
	var transactions, engine string
	var m modes
	switch err := s.ask(ctx, "engine", table, append([]any{&transactions, &engine}, m.dest()...)...); {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %s", errUnlisted, table)
	case err != nil:
		return err
	case transactions != "YES":
		return fmt.Errorf("%w: %s of table %s", errEngine, engine, table)
	}
	return m.check(transacts)
}

// ask reads the answer of MySQL about a table.
func (s *startCheck) ask(ctx context.Context, title, table string, dest ...any) error {
	schema, name, found := strings.Cut(strings.ReplaceAll(table, "`", "'"), ".")
	if !found {
		schema, name = "DATABASE()", schema
	}
	return s.c.statement(title, "{schema}", schema, "{table}", name).query(ctx, s.c.db, nil, dest...)
}

// checkLayout returns an error unless the tables have transactions, no mode of the session changes
// the meaning of our statements, and the names in the table of locks are unique and all different.
// Without the latter MySQL, unlike the others, carries the statements out, and either grants a lock
// to every client or takes "a" for "A".
func (s *startCheck) checkLayout(ctx context.Context) error {
	tables := []string{s.c.names.locks}
	if s.c.fair {
		tables = append(tables, s.c.names.queue)
	}
	for _, table := range tables {
		if err := s.checkEngine(ctx, table, false); err != nil { // also if there is no table
			return err
		}
	}
	var unique bool
	if err := s.ask(ctx, "layout", s.c.names.locks, &unique); err != nil {
		return err
	}
	if !unique {
		return errNotUnique
	}
	return nil
}

// probes is how often checkSessions probes. One probe finds a pooler without other traffic. With
// up to 16 connections that run transactions in a loop, single probes missed up to a fifth of the time
// (PgBouncer 1.18, 2 processors). Eight probes are 48 round trips, once per client.
const probes = 8

// checkSessions returns [ErrUnsupportedTopology] if connections share sessions of the server,
// as behind a pooler that gives each transaction a session. A pool of one connection is not
// checked. Each probe has the time of a request.
//
// An error is certain, success is not. Other traffic can hide a pooler from one probe, if it takes
// or gives back a session between two steps. Therefore checkSessions repeats the probe. A pooler
// stays hidden if it gives a connection its last session again for as long as nobody else needs
// that session.
func (s *startCheck) checkSessions(ctx context.Context) error {
	if s.c.db.Stats().MaxOpenConnections == 1 {
		return nil
	}
	for range probes {
		switch err := s.c.request(ctx, s.probeSessions); {
		case errors.Is(err, ErrUnsupportedTopology):
			return fmt.Errorf("%w: behind a pooler that changes sessions use a Table without WithListener "+
				"(listen=false in a URL), or connect to the server itself", err)
		case err != nil:
			return err
		}
	}
	return nil
}

// probeSessions uses two connections. A pooler shows itself in one of three ways:
//
//   - A second connection has the session of the first connection.
//   - While the second connection is in a transaction, the first connection does not come back to
//     its session.
//   - When that transaction has ended, the second connection does not come back to its session.
func (s *startCheck) probeSessions(ctx context.Context) error {
	first, err := s.c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := s.c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer second.Close()

	one, err := backend(ctx, first, 0)
	if err != nil {
		return err
	}
	tx, err := second.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	two, err := backend(ctx, tx, 0)
	if err != nil {
		return err
	}
	if one == two {
		return sessionsError(one, two)
	}
	if _, err = backend(ctx, first, one); err != nil {
		return err
	}
	if err = tx.Rollback(); err != nil {
		return err
	}
	_, err = backend(ctx, second, two)
	return err
}

// backend returns the server's process id of the session behind on. It returns an error if the id
// differs from before, which is 0 the first time.
func backend(ctx context.Context, on database, before int64) (pid int64, err error) {
	err = on.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	if err == nil && before != 0 && pid != before {
		err = sessionsError(before, pid)
	}
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		switch state.SQLState() {
		case "26000", "42P05": // the statement that was prepared is not there, or is another connection's
			err = fmt.Errorf("%w: %w", ErrUnsupportedTopology, err)
		}
	}
	return pid, err
}

// sessionsError reports a statement that was carried out by another session than the statement
// before.
func sessionsError(before, now int64) error {
	return fmt.Errorf("%w: sessions %d and %d", ErrUnsupportedTopology, before, now)
}

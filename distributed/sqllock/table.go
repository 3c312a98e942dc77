package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The state of a lock is a row: its name; its owner, or NULL; the token of its last holder; the
// end of its lease. The row stays when the lock is free, so that the token never goes back. An
// acquisition and a release are one statement each, and so is the renewal of all holds.

// tableStore is the [driver.Store] of a [Table].
type tableStore struct {
	c                *core
	holds            string // the table of the holds
	lost             func(id driver.HoldID, cause error)
	client, identity string
	untold           atomic.Bool // there is no table for identities
}

var _ driver.Store = (*tableStore)(nil)

func newTableStore(c *core) *tableStore {
	s := &tableStore{c: c, holds: c.names.locks}
	if c.listen != nil {
		c.noticed = s.onNotice
	}
	if c.dialect == MySQL {
		c.start.check = func(ctx context.Context) error { return c.request(ctx, c.start.checkLayout) }
	}
	return s
}

// micros returns d in microseconds, rounded up, whatever d is: the longest lease must not
// overflow.
func micros(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}

func (s *tableStore) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if err := s.c.fit(ctx, req.Name); err != nil {
		return driver.Reply{}, err
	}
	if s.c.dialect == Postgres && s.c.waiters.of(req.HoldID) != nil {
		return s.acquireAgain(ctx, req)
	}
	token, err := s.take(ctx, req)
	switch {
	case err == nil && token > 0:
		s.c.listenOn()
		return driver.Reply{Held: true, Token: uint64(token)}, nil
	case s.c.inTheWay(err):
		return s.inTheWay(ctx, req, err)
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return driver.Reply{}, s.c.outcome(err)
	}
	row := rowOfLock{seen: driver.Now()}
	if err := s.c.query(ctx, s.c.statements["rest"], []any{req.Name}, &row.left, &row.token, &row.owner); err != nil {
		if s.c.unsure { // the statement before may have been carried out twice
			return driver.Reply{}, err
		}
		return driver.Reply{}, nil // it is only sure that the lock is not held
	}
	return s.overtaken(req, row), nil
}

// acquireAgain is Acquire for a waiter on PostgreSQL that has been refused before. Most such
// requests are refused again, so the same statement also returns the reason.
func (s *tableStore) acquireAgain(ctx context.Context, req driver.Request) (driver.Reply, error) {
	var taken bool
	row := rowOfLock{seen: driver.Now()}
	args := []any{req.Name, req.Acquisition, micros(req.TTL)}
	err := s.c.queryOnce(ctx, s.c.statements["acquire again"], args, &taken, &row.left, &row.token, &row.owner)
	switch {
	case s.c.inTheWay(err):
		return s.inTheWay(ctx, req, err)
	case errors.Is(err, sql.ErrNoRows):
		return driver.Reply{}, nil
	case err != nil:
		return driver.Reply{}, s.c.outcome(err)
	case taken:
		return driver.Reply{Held: true, Token: uint64(row.token)}, nil
	}
	return s.overtaken(req, row), nil
}

// rowOfLock is the row of a lock.
type rowOfLock struct {
	seen  time.Time // by [driver.Now], when a statement was sent that reads it
	left  int64     // for how many microseconds the lock is not free
	token int64
	owner string // the last holder
}

// wait returns for how long the lock is not free.
func (r rowOfLock) wait() time.Duration { return max(time.Duration(r.left)*time.Microsecond, 0) }

// overtaken is replyHeld, and also tells the local waiters which hold has the lock.
func (s *tableStore) overtaken(req driver.Request, row rowOfLock) driver.Reply {
	reply := s.replyHeld(req, row)
	if !reply.Held {
		s.c.onRefusal(req.Name, row.token)
	}
	return reply
}

// replyHeld is the reply to an acquisition that has found the lock held. An earlier request of it
// may have the lock, if the answer was lost.
func (s *tableStore) replyHeld(req driver.Request, row rowOfLock) driver.Reply {
	wait := row.wait()
	if row.owner == req.Acquisition && wait > 0 {
		s.c.listenOn()
		return driver.Reply{Held: true, Token: uint64(row.token), Since: row.seen.Add(wait - req.TTL)}
	}
	return driver.Reply{Wait: wait}
}

// take acquires the lock if it is free, and returns the token. The token is 0, or the error
// sql.ErrNoRows, if the lock is not free.
func (s *tableStore) take(ctx context.Context, req driver.Request) (token int64, err error) {
	acquire, args := s.c.statements["acquire"], []any{req.Name, req.Acquisition, micros(req.TTL)}
	if s.c.dialect != MySQL {
		err = s.c.queryOnce(ctx, acquire, args, &token)
		return token, err
	}
	err = s.c.request(ctx, func(ctx context.Context) error {
		r, err := s.c.db.ExecContext(ctx, acquire.text, acquire.args(args)...)
		if err == nil {
			token, err = r.LastInsertId()
		}
		return err
	})
	return token, err
}

// inTheWay reports whether err says that another transaction was in the way. In SQLite, which has
// no slow network, a missing answer means the same.
func (c *core) inTheWay(err error) bool {
	return err != nil && (c.dialect.classify(err) == busy || c.dialect == SQLite && errors.Is(err, ErrTimeout))
}

// inTheWay is the reply to an acquisition that has failed so far because another transaction
// was in the way.
func (s *tableStore) inTheWay(ctx context.Context, req driver.Request, err error) (driver.Reply, error) {
	if !errors.Is(err, ErrTimeout) {
		return driver.Reply{}, nil
	}
	return s.Lookup(ctx, req)
}

func (s *tableStore) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	var token int64
	lookup := s.c.statement("lookup", "{locks}", s.holds)
	switch err := s.c.query(ctx, lookup, []any{req.Name, req.Acquisition}, &token); {
	case errors.Is(err, sql.ErrNoRows):
		return driver.Reply{}, nil
	case err != nil:
		return driver.Reply{}, err
	}
	return driver.Reply{Held: true, Token: uint64(token)}, nil
}

// Renew extends all holds by one statement. If the statement misses some holds, a second statement
// asks which.
func (s *tableStore) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	which, args := whichOf(holds, []any{micros(d)})
	held := make([]bool, len(holds))
	n, unanswered, err := s.c.execSlowly(ctx, s.c.statement("renew", "{which}", which, "{locks}", s.holds), args...)
	if err != nil {
		return nil, err
	}
	if unanswered { // beside an answer, which counts
		err = driver.ErrUnanswered
	}
	if n == int64(len(holds)) {
		for i := range held {
			held[i] = true
		}
		return held, err
	}
	renewed := s.c.statement("renewed", "{which}", which, "{locks}", s.holds)
	current, failed := collect(ctx, s.c, renewed, args, func(rows *sql.Rows) (h driver.HoldID, err error) {
		err = rows.Scan(&h.Name, &h.Acquisition)
		return h, err
	})
	if failed != nil {
		return nil, failed
	}
	for i, h := range holds {
		// The hold was extended: a lease that was over cannot have begun anew.
		held[i] = slices.Contains(current, h)
	}
	return held, err
}

func (s *tableStore) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	title := "release"
	if s.c.listen != nil {
		title = "release and notify"
	}
	n, err := s.c.count(ctx, title, id)
	return driver.Released{Held: n > 0, Awaited: true}, s.c.outcome(err)
}

// count carries out a statement that ends an acquisition, and returns how many rows it has changed.
// It notifies if there is a listener.
func (c *core) count(ctx context.Context, title string, id driver.HoldID) (int64, error) {
	channel := ""
	if c.listen != nil {
		channel = c.names.channel
	}
	return c.countOn(ctx, title, id, channel)
}

// countOn is count with the channel to notify on, or "". Statements that can notify have it as an
// argument.
func (c *core) countOn(ctx context.Context, title string, id driver.HoldID, channel string) (int64, error) {
	s := c.statements[title]
	return c.once(ctx, true, func(ctx context.Context, on database) (n int64, err error) {
		if len(s.order) < 3 || c.dialect != Postgres {
			return s.exec(ctx, on, id.Name, id.Acquisition)
		}
		var nothing sql.NullString
		err = s.query(ctx, on, []any{id.Name, id.Acquisition, channel}, &n, &nothing)
		return n, err
	})
}

func (s *tableStore) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	return s.c.watch(id), nil
}

// Table has locks that are rows of a table, with a lease and a fencing token. A Table is a
// [locks.Provider]. It is safe for concurrent use; [Table.Close] ends it. A Table must not be
// copied.
type Table struct {
	c       *core
	lc      *lease.Client // of locks
	permits *permitStore
	clients driver.Group[*tableStore, *lease.Client]
}

var _ locks.Provider = (*Table)(nil)

// NewTable returns a Table in db. It uses a connection of db's pool for each request, and none in
// between. It never closes db, and must be closed before db is. In MySQL and MariaDB the first
// acquisition also checks the layout of the table, once for all callers.
func NewTable(db *sql.DB, opts ...Option) (*Table, error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	table := newTableStore(c)
	common := append([]lease.Option{lease.WithMaxLocalHandoffs(0)}, c.lease...) // each holder has a token of its own
	var store driver.Store = table
	if c.fair {
		store = queueStore{table}
	}
	t := &Table{c: c, permits: newPermitStore(c)}
	t.lc, err = t.clients.Client(table, func() (*lease.Client, error) { return c.client(store, common) })
	if err != nil {
		return nil, err
	}
	return t, nil
}

// CreateSchema makes the tables of [Schema] that are missing.
func (t *Table) CreateSchema(ctx context.Context) error { return t.c.createSchema(ctx) }

// Locker returns the lock called name. It is a [*lease.Mutex].
func (t *Table) Locker(name string) locks.TryLocker { return t.Mutex(name) }

// Mutex returns the lock called name.
func (t *Table) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	return newMutex(t.lc, name, opts)
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]; see
// [lease.Client.Close].
func (t *Table) Close(ctx context.Context) error {
	return t.c.close(ctx, func(ctx context.Context) error {
		_, err := t.clients.Close(ctx)
		return err
	})
}

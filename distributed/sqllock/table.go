package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The state of a lock is a row: its name; its owner, or NULL; the token of its last holder; when its lease ends. The row stays when
// the lock is free, so that the token never goes back.

// acquire takes the lock if it is free or its lease over. In PostgreSQL and SQLite there is a row, with the token, if and only
// if that is so. $1 name, $2 owner, $3 lease.
var acquire = map[Dialect]string{
	Postgres: acquireReturning,
	SQLite:   acquireReturning,
	// The token comes as the id of the insertion, 0 if the lock is somebody else's. The assignments are made in their order: what
	// was there decides, of which ends is the last to go.
	MySQL: `
INSERT INTO {locks} (name, owner, token, ends) VALUES ($1, $2, LAST_INSERT_ID(1), {after3})
ON DUPLICATE KEY UPDATE
	token = IF(owner IS NULL OR ends <= {now}, LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0)),
	owner = IF(owner IS NULL OR ends <= {now}, $2, owner),
	ends = IF(owner = $2, {after3}, ends)`,
}

const (
	acquireReturning = `
INSERT INTO {locks} AS l (name, owner, token, ends) VALUES ($1, $2, 1, {after3})
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = l.token + 1, ends = {after3}
WHERE l.owner IS NULL OR l.ends <= {now}
RETURNING token`

	// rest is how long the lock will not be free, and the token of its holder. $1 name.
	rest = `SELECT CASE WHEN l.owner IS NULL THEN 0 ELSE {until} END, l.token FROM {locks} AS l WHERE l.name = $1`

	// recall is the token of the owner's hold. $1 name, $2 owner.
	recall = `SELECT token FROM {locks} WHERE name = $1 AND owner = $2 AND ends > {now}`

	// renew prolongs the holds of some names and owners that are not over. $1 lease, and then the names and owners.
	renew = `UPDATE {locks} SET ends = {after1} WHERE ends > {now} AND ({which})`

	// renewed is which of the same there are. All arguments have to be in it.
	renewed = `SELECT name, owner FROM {locks} WHERE ends > {now} AND {micros} > 0 AND ({which})`

	// $1 name, $2 owner.
	release = `UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2`

	// releaseTelling is release in PostgreSQL, where it tells those who listen. $3 channel.
	releaseTelling = `
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, $1) AS text)`
)

// tableStore is the [lease.Store] of a [Table].
type tableStore struct {
	c *core

	acquire, rest, recall, release *statement
}

var _ lease.Store = (*tableStore)(nil)

func newTableStore(c *core) *tableStore {
	s := &tableStore{c: c}
	r := c.names.replacements(c.dialect)
	s.acquire = c.dialect.statement(acquire[c.dialect], r...)
	s.rest = c.dialect.statement(rest, r...)
	s.recall = c.dialect.statement(recall, r...)
	if c.listen != nil {
		s.release = c.dialect.statement(releaseTelling, r...)
	} else {
		s.release = c.dialect.statement(release, r...)
	}
	if c.dialect == MySQL {
		c.start.check = c.checkLayout
	}
	return s
}

// micros returns d in microseconds, rounded up, whatever d is: a lease without end must not end before it begins.
func micros(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}

func (s *tableStore) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	if err := s.c.fit(ctx); err != nil {
		return lease.Reply{}, err
	}
	var token int64
	var err error
	if s.c.dialect == MySQL {
		err = s.c.request(ctx, func(ctx context.Context) error {
			r, err := s.c.db.ExecContext(ctx, s.acquire.text, s.acquire.args([]any{name, owner, micros(d)})...)
			if err == nil {
				token, err = r.LastInsertId()
			}
			return err
		})
	} else {
		err = s.c.query(ctx, s.acquire, []any{name, owner, micros(d)}, &token)
	}
	switch {
	case err == nil && token > 0:
		return lease.Reply{Held: true, Token: uint64(token)}, nil
	case s.c.inTheWay(err):
		return s.inTheWay(ctx, name, owner, err)
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return lease.Reply{}, s.c.outcome(err)
	}
	var wait int64
	if err := s.c.query(ctx, s.rest, []any{name}, &wait, &token); err != nil {
		return lease.Reply{}, nil // not held is all that is sure
	}
	s.c.refused(name, token)
	return lease.Reply{Wait: max(time.Duration(wait)*time.Microsecond, 0)}, nil
}

// inTheWay reports whether err says that somebody else was in the way. In SQLite, where no network can be slow, that is what a lack of an
// answer means.
func (c *core) inTheWay(err error) bool {
	return err != nil && (c.dialect.classify(err) == busy || c.dialect == SQLite && errors.Is(err, ErrTimeout))
}

// inTheWay is the reply to an acquisition that was in vain so far because somebody else was in the way.
func (s *tableStore) inTheWay(ctx context.Context, name, owner string, err error) (lease.Reply, error) {
	if !errors.Is(err, ErrTimeout) {
		return lease.Reply{}, nil
	}
	return s.Lookup(ctx, name, owner)
}

func (s *tableStore) Lookup(ctx context.Context, name, owner string) (lease.Reply, error) {
	var token int64
	switch err := s.c.query(ctx, s.recall, []any{name, owner}, &token); {
	case errors.Is(err, sql.ErrNoRows):
		return lease.Reply{}, nil
	case err != nil:
		return lease.Reply{}, err
	}
	return lease.Reply{Held: true, Token: uint64(token)}, nil
}

// Renew prolongs all holds by one statement. The names and owners in it are arguments.
func (s *tableStore) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	var which strings.Builder
	args := make([]any, 1, 1+2*len(holds))
	args[0] = micros(d)
	dialect := s.c.dialect
	for i, h := range holds {
		if i > 0 {
			which.WriteString(" OR ")
		}
		fmt.Fprintf(&which, "name = $%d AND owner = $%d", len(args)+1, len(args)+2)
		args = append(args, h.Name, h.Acquisition)
	}
	r := append(s.c.names.replacements(dialect), "{which}", which.String(), "{micros}", argument(dialect, 1))
	held := make([]bool, len(holds))
	n, err := s.c.execSlowly(ctx, dialect.statement(renew, r...), args...)
	if err != nil {
		return nil, err
	}
	if n == int64(len(holds)) {
		for i := range held {
			held[i] = true
		}
		return held, nil
	}
	// Some are not ours any more. Those that are were prolonged: a lease that was over cannot have begun anew.
	current := make(map[lease.HoldID]bool, len(holds))
	ask := dialect.statement(renewed, r...)
	err = s.c.request(ctx, func(ctx context.Context) error {
		clear(current)
		rows, err := s.c.db.QueryContext(ctx, ask.text, ask.args(args)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r lease.HoldID
			if err := rows.Scan(&r.Name, &r.Acquisition); err != nil {
				return err
			}
			current[r] = true
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	for i, h := range holds {
		held[i] = current[h]
	}
	return held, nil
}

func (s *tableStore) Release(ctx context.Context, name, owner string) (lease.Released, error) {
	var n int64
	var err error
	if s.c.listen != nil {
		var nothing sql.NullString
		err = s.c.query(ctx, s.release, []any{name, owner, s.c.names.channel}, &n, &nothing)
	} else {
		n, err = s.c.exec(ctx, s.release, name, owner)
	}
	return lease.Released{Held: n > 0, Awaited: true}, err
}

func (s *tableStore) Watch(ctx context.Context, name, owner string) (lease.Watch, error) {
	return s.c.watch(name), nil
}

// Table has locks that are rows of a table, with a lease and a fencing token. It is a [locks.Provider]. It is safe for concurrent use;
// [Table.Close] ends it.
type Table struct {
	c  *core
	lc *lease.Client
}

var _ locks.Provider = (*Table)(nil)

// NewTable returns a Table in db. It uses a connection of db's pool for each request, and none in between. It never closes db,
// and has to be closed before db is.
func NewTable(db *sql.DB, opts ...Option) (*Table, error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	var store lease.Store = newTableStore(c)
	common := append([]lease.Option{lease.WithMaxLocalHandoffs(0)}, c.lease...) // each holder has a token of its own
	if c.fair {
		store = newQueueStore(c, store.(*tableStore))
		// Who waits asks often enough not to count as dead.
		common = append([]lease.Option{lease.WithPoll(min(lease.DefaultPoll, c.wait/3))}, common...)
	}
	lc, err := lease.New(store, common...)
	if err != nil {
		return nil, err
	}
	if c.listen != nil {
		c.hub = newHub(c)
	}
	return &Table{c, lc}, nil
}

// CreateSchema makes the tables that are not there: those of [Schema].
func (t *Table) CreateSchema(ctx context.Context) error { return t.c.createSchema(ctx) }

// Locker returns the lock called name. It is a [*Lock].
func (t *Table) Locker(name string) locks.TryLocker { return t.Lock(name) }

// Lock returns the lock called name.
func (t *Table) Lock(name string, opts ...lease.MutexOption) *Lock { return newLock(t.lc, name, opts) }

// Close releases all holds, and has all who wait return [locks.ErrClosed]; see [lease.Client.Close].
func (t *Table) Close(ctx context.Context) error { return t.c.close(ctx, t.lc) }

func (c *core) close(ctx context.Context, lc *lease.Client) error {
	if ctx == nil {
		ctx = context.Background()
	}
	c.end()
	err := lc.Close(ctx)
	if c.hub != nil {
		c.hub.close(ctx)
	}
	c.jobs.Wait()
	return err
}

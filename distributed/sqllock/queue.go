package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// The queue of a lock is the rows of its name in a table: the waiting owners by ascending id, each with the time when it counts as
// dead. Whoever changes it has the row of the lock first, so that ids are given in the order of the commits, and
// two who come at a time do not both believe to be the first:
//
//	row of the lock   queue            asker          becomes
//	held              any              not in it      last in it
//	held              any              in it          what it was, alive for longer
//	free, over        dead ones first  any            they are removed, and it is looked at again
//	free, over        empty            any            holder
//	free, over        asker first      in it          holder, and leaves it
//	free, over        another first    any            as if it were held
//
// A release, an acquisition without queueing and a renewal change the row of the lock only, each in one statement.

const (
	// standing is how things are: how long the lock will not be free, and, if the owner is in the queue and need not prolong that, its id
	// and whether somebody who is alive is before it. $1 name, $2 owner, $3 wait.
	standing = `
SELECT CASE WHEN l.owner IS NULL THEN 0 ELSE {until} END,
	(SELECT count(*) FROM {queue} AS p WHERE p.name = $1 AND p.ends > {now} AND p.id < q.id)
FROM {locks} AS l JOIN {queue} AS q ON q.name = l.name
WHERE l.name = $1 AND q.owner = $2 AND q.ends > {half3}`

	// locked takes the row, and is how long the lock will not be free. $1 name.
	locked = `SELECT CASE WHEN l.owner IS NULL THEN 0 ELSE {until} END FROM {locks} AS l WHERE l.name = $1 {update}`

	// first is the head of the queue: id, owner, whether it is dead. $1 name.
	first = `SELECT id, owner, CASE WHEN ends <= {now} THEN 1 ELSE 0 END FROM {queue} WHERE name = $1 ORDER BY id LIMIT 1`

	// drop removes one of them. $1 id.
	drop = `DELETE FROM {queue} WHERE id = $1`

	// grantTo makes the owner the holder. $1 name, $2 owner, $3 lease.
	grantTo = `UPDATE {locks} SET owner = $2, token = token + 1, ends = {after3} WHERE name = $1`

	// granted is the token. $1 name.
	granted = `SELECT token FROM {locks} WHERE name = $1`

	// stay prolongs the place. $1 name, $2 owner, $3 wait.
	stay = `UPDATE {queue} SET ends = {after3} WHERE name = $1 AND owner = $2`

	// enter adds one. $1 name, $2 owner, $3 wait.
	enter = `INSERT INTO {queue} (name, owner, ends) VALUES ($1, $2, {after3})`

	// leave removes the owner. $1 name, $2 owner.
	leave = `DELETE FROM {queue} WHERE name = $1 AND owner = $2`

	// leaveTelling is leave in PostgreSQL, where it tells those who listen: it was perhaps the owner's turn. $3 channel.
	leaveTelling = `
WITH gone AS (DELETE FROM {queue} WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM gone), CAST(pg_notify($3, $1) AS text)`
)

// makeRow makes the row of a lock that nobody ever had. $1 name.
var makeRow = map[Dialect]string{
	Postgres: `INSERT INTO {locks} (name, token, ends) VALUES ($1, 0, {now}) ON CONFLICT (name) DO NOTHING`,
	SQLite:   `INSERT INTO {locks} (name, token, ends) VALUES ($1, 0, {now}) ON CONFLICT (name) DO NOTHING`,
	MySQL:    `INSERT IGNORE INTO {locks} (name, token, ends) VALUES ($1, 0, {now})`,
}

// queueStore is the [lease.Store] of a [Table] with a queue.
type queueStore struct {
	*tableStore
	wait time.Duration

	standing, locked, first, drop, grant, granted, stay, enter, leave, make *statement
}

var _ lease.Queue = (*queueStore)(nil)

func newQueueStore(c *core, t *tableStore) *queueStore {
	r := c.names.replacements(c.dialect)
	s := func(template string) *statement { return c.dialect.statement(template, r...) }
	gone := s(leave)
	if c.listen != nil {
		gone = s(leaveTelling)
	}
	return &queueStore{
		tableStore: t,
		wait:       c.wait,
		standing:   s(standing),
		locked:     s(locked),
		first:      s(first),
		drop:       s(drop),
		grant:      s(grantTo),
		granted:    s(granted),
		stay:       s(stay),
		enter:      s(enter),
		leave:      gone,
		make:       s(makeRow[c.dialect]),
	}
}

func (s *queueStore) Enqueue(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	if err := s.c.fit(ctx); err != nil {
		return lease.Reply{}, err
	}
	// A glance, which takes and changes nothing, is enough for most who ask again.
	var left, before int64
	err := s.c.query(ctx, s.standing, []any{name, owner, micros(s.wait)}, &left, &before)
	if err == nil && (left > 0 || before > 0) {
		return lease.Reply{Wait: max(time.Duration(left)*time.Microsecond, 0)}, nil
	}
	var reply lease.Reply
	err = s.c.request(ctx, func(ctx context.Context) (err error) {
		tx, err := s.c.db.BeginTx(ctx, s.c.current())
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if reply, err = s.ask(ctx, tx, name, owner, d); err != nil {
			return err
		}
		return tx.Commit()
	})
	switch {
	case err == nil:
		return reply, nil
	case s.c.inTheWay(err):
		return s.inTheWay(ctx, name, owner, err) // not in the queue yet, if this was the first time
	}
	return lease.Reply{}, s.c.outcome(err)
}

// ask does in tx what the table above says.
func (s *queueStore) ask(ctx context.Context, tx *sql.Tx, name, owner string, d time.Duration) (lease.Reply, error) {
	exec := func(st *statement, args ...any) (int64, error) {
		r, err := tx.ExecContext(ctx, st.text, st.args(args)...)
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	query := func(st *statement, args []any, dest ...any) error {
		return tx.QueryRowContext(ctx, st.text, st.args(args)...).Scan(dest...)
	}
	var left int64
	err := sql.ErrNoRows
	if s.c.dialect != SQLite {
		err = query(s.locked, []any{name}, &left)
	}
	if errors.Is(err, sql.ErrNoRows) {
		// In SQLite this comes first in any case: a transaction that begins with reading cannot always go on to write.
		if _, err = exec(s.make, name); err == nil {
			err = query(s.locked, []any{name}, &left)
		}
	}
	if err != nil {
		return lease.Reply{}, err
	}
	for left <= 0 {
		var id, dead int64
		head := owner
		err := query(s.first, []any{name}, &id, &head, &dead)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return lease.Reply{}, err
		}
		if head != owner && dead == 0 {
			break
		}
		if err == nil {
			if _, err := exec(s.drop, id); err != nil {
				return lease.Reply{}, err
			}
		}
		if head != owner {
			continue
		}
		if _, err := exec(s.grant, name, owner, micros(d)); err != nil {
			return lease.Reply{}, err
		}
		var token int64
		if err := query(s.granted, []any{name}, &token); err != nil {
			return lease.Reply{}, err
		}
		return lease.Reply{Held: true, Token: uint64(token)}, nil
	}
	n, err := exec(s.stay, name, owner, micros(s.wait))
	if err == nil && n == 0 {
		_, err = exec(s.enter, name, owner, micros(s.wait))
	}
	return lease.Reply{Wait: max(time.Duration(left)*time.Microsecond, 0)}, err
}

// Leave gives the place up.
func (s *queueStore) Leave(ctx context.Context, name, owner string) (err error) {
	if s.c.listen != nil {
		var n int64
		var nothing sql.NullString
		return s.c.query(ctx, s.leave, []any{name, owner, s.c.names.channel}, &n, &nothing)
	}
	_, err = s.c.exec(ctx, s.leave, name, owner)
	return err
}

package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
)

// ErrStale reports a fencing token that is smaller than the highest token that the resource has
// seen: another holder has had the lock since. It is [fence.ErrStale].
var ErrStale = fence.ErrStale

// Gate refuses late changes of a table's rows. Each row has a column with the highest fencing token
// that has changed the row. A smaller token is refused. So a holder that was paused beyond the end
// of its lease does no harm, whichever store its lock is on. See package fence for the reasons, and
// for values elsewhere.
//
// A Gate is safe for concurrent use. It keeps nothing in this process.
type Gate struct {
	c          *core
	table      string
	admit, ask *statement
}

// NewGate returns a Gate for the rows of a table in db. It uses the options [WithDialect] and
// [WithRequestTimeout].
func NewGate(db *sql.DB, columns Columns, opts ...Option) (*Gate, error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	r, err := c.dialect.replacements("{table}", columns.Table, "{key}", columns.Key, "{token}", columns.Token)
	if err != nil {
		return nil, err
	}
	if c.dialect == MySQL {
		c.start.check = c.start.checkModes
	}
	return &Gate{
		c:     c,
		table: columns.Table,
		admit: c.dialect.statement(`UPDATE {table} SET {token} = $2 WHERE {key} = $1 AND {token} <= $2`, r...),
		ask:   c.dialect.statement(`SELECT {token} FROM {table} WHERE {key} = $1 {for update}`, r...),
	}, nil
}

// fail returns err with the attempt and the row, or nil if err is nil.
func (g *Gate) fail(op string, key any, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqllock: Gate.%s of %v in %s: %w", op, key, g.table, err)
}

// Check notes token in the row whose key is key, in the transaction tx. If the row has a higher
// token, the error matches [ErrStale]. Without a row it matches [sql.ErrNoRows]. With the token 0,
// which every hold of an [Advisory] has, it matches [fence.ErrNoToken]. The change of the row comes
// after Check, in tx: no other token is admitted until tx ends.
func (g *Gate) Check(ctx context.Context, tx *sql.Tx, key any, token uint64) error {
	return g.fail("Check", key, g.check(ctx, tx, key, token))
}

func (g *Gate) check(ctx context.Context, tx *sql.Tx, key any, token uint64) error {
	switch {
	case ctx == nil:
		return locks.ErrNilContext
	case tx == nil:
		return errors.New("nil transaction")
	case token == 0: // a new row would admit it
		return fence.ErrNoToken
	case int64(token) < 0:
		return errors.New("the token exceeds 63 bits")
	}
	n, err := g.admit.exec(ctx, tx, key, int64(token))
	if err != nil || n > 0 {
		return err
	}
	// MySQL does not count a row that has the token already.
	var seen int64
	if err := g.ask.query(ctx, tx, []any{key}, &seen); err != nil {
		return err
	}
	if g.c.dialect != MySQL || seen != int64(token) {
		return fmt.Errorf("token %d after %d: %w", token, seen, ErrStale)
	}
	return nil
}

// Do runs fn in a transaction after [Gate.Check], and commits it. If fn returns an error or panics,
// Do rolls the transaction back, and the token is not noted. In MySQL and MariaDB the error matches
// [locks.ErrLost] if fn went on after the server had ended the transaction, see [Row.Do].
func (g *Gate) Do(ctx context.Context, key any, token uint64, fn func(tx *sql.Tx) error) error {
	const op = "Do"
	switch {
	case ctx == nil:
		return g.fail(op, key, locks.ErrNilContext)
	case fn == nil:
		return g.fail(op, key, locks.ErrNilFunc)
	}
	if err := g.c.start.fit(ctx); err != nil {
		return g.fail(op, key, err)
	}
	tx, err := g.c.db.BeginTx(ctx, nil)
	if err != nil {
		return g.fail(op, key, err)
	}
	defer tx.Rollback() // nothing after a commit
	if err := g.check(ctx, tx, key, token); err != nil {
		return g.fail(op, key, err)
	}
	if err := g.c.dialect.mark(ctx, tx); err != nil {
		return g.fail(op, key, err)
	}
	if err := fn(tx); err != nil {
		return err
	}
	return g.fail(op, key, g.c.dialect.commitMarked(ctx, tx))
}

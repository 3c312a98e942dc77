package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
)

// ErrStale reports a fencing token that is smaller than one that the resource has seen, which
// is a later holder's. It is [fence.ErrStale].
var ErrStale = fence.ErrStale

// Fence refuses changes of a table's rows that come too late. Each row has, in a column of its
// own, the greatest fencing token of those that have changed it, and a smaller one is refused.
// The work of a holder that was paused beyond the end of its lease therefore does no harm,
// whichever store the lock is from.
type Fence struct {
	dialect   Dialect
	db        *sql.DB
	table     string
	pass, ask *statement
}

// NewFence returns a Fence around the rows of a table in db. It uses the option [WithDialect].
func NewFence(db *sql.DB, columns Columns, opts ...Option) (*Fence, error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	r, err := c.dialect.replacements("{table}", columns.Table, "{key}", columns.Key, "{token}", columns.Token)
	if err != nil {
		return nil, err
	}
	return &Fence{
		dialect: c.dialect,
		db:      db,
		table:   columns.Table,
		pass:    c.dialect.statement(`UPDATE {table} SET {token} = $2 WHERE {key} = $1 AND {token} <= $2`, r...),
		ask:     c.dialect.statement(`SELECT {token} FROM {table} WHERE {key} = $1 {for update}`, r...),
	}, nil
}

// Pass stores token in the row whose key is key, and returns nil, unless the row has a greater
// one: then the error matches [ErrStale]. Without a row it matches [sql.ErrNoRows]. A token of
// 0, which is that of a [Row] or an [Advisory], is refused with [fence.ErrNoToken]. tx has to
// change the row after Pass: until tx ends, no other token passes.
func (f *Fence) Pass(ctx context.Context, tx *sql.Tx, key any, token uint64) error {
	fail := func(err error) error {
		return fmt.Errorf("sqllock: Fence of %v in %s, with token %d: %w", key, f.table, token, err)
	}
	switch {
	case ctx == nil:
		return fail(locks.ErrNilContext)
	case tx == nil:
		return fail(errors.New("nil transaction"))
	case token == 0: // it would pass where nobody had a token so far, and guard nothing
		return fail(fence.ErrNoToken)
	case int64(token) < 0:
		return fail(errors.New("the token exceeds 63 bits"))
	}
	r, err := tx.ExecContext(ctx, f.pass.text, f.pass.args([]any{key, int64(token)})...)
	if err != nil {
		return fail(err)
	}
	n, err := r.RowsAffected()
	if err != nil || n > 0 {
		return err
	}
	// MySQL does not count a row that has the token already.
	var seen int64
	if err := tx.QueryRowContext(ctx, f.ask.text, f.ask.args([]any{key})...).Scan(&seen); err != nil {
		return fail(err)
	}
	if f.dialect != MySQL || seen != int64(token) {
		return fail(fmt.Errorf("%w: %d was there", ErrStale, seen))
	}
	return nil
}

// Do runs fn in a transaction that has passed, and commits it. If fn returns an error or
// panics, it is rolled back.
func (f *Fence) Do(ctx context.Context, key any, token uint64, fn func(tx *sql.Tx) error) error {
	if ctx == nil || fn == nil {
		const text = "sqllock: Fence.Do of %v in %s: nil context or function: %w"
		return fmt.Errorf(text, key, f.table, locks.ErrNilContext)
	}
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("sqllock: Fence.Do of %v in %s: %w", key, f.table, err)
	}
	defer tx.Rollback() // nothing after a commit
	if err := f.Pass(ctx, tx, key, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := f.dialect.commit(tx); err != nil {
		return fmt.Errorf("sqllock: Fence.Do of %v in %s: %w", key, f.table, err)
	}
	return nil
}

package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
)

// Columns says which table and columns a [Versioned] or a [Gate] uses. All are identifiers, see
// [WithTable]. Columns that hold a version or a token are 64-bit integers that are not null.
type Columns struct {
	// Table is the table.
	Table string
	// Key is the column that tells the rows apart. It must be unique.
	Key string
	// Value is the column of the value, of a Versioned only.
	Value string
	// Version is the column of the version, of a Versioned only.
	Version string
	// Token is the column of the highest fencing token so far, of a Gate only.
	Token string
}

// replacements returns the texts that replace the marks in statements. The name of a column follows
// each mark.
func (d Dialect) replacements(marks ...string) ([]string, error) {
	for i := 1; i < len(marks); i += 2 {
		id, err := d.identifier(marks[i])
		if err != nil {
			return nil, err
		}
		marks[i] = id
	}
	return marks, nil
}

// Versioned is an optimistic lock around a value in one row of a table. Nobody waits to read the
// value or to compute its successor. A change is committed only if the version that it was computed
// from is still the current version. Versioned is the twin of cas.Versioned for a column of your
// table: every program that changes the value must add 1 to the version. It keeps nothing in this
// process. T is a type that the driver can read from the column, and write to it.
//
// A change costs two statements, and holds no connection between them. While changes seldom meet,
// no other lock on a database costs less. Where changes often meet, work is done in vain, and a
// [Row] is better.
type Versioned[T any] struct {
	c               *core
	key             any
	load, swap, set *statement
}

// NewVersioned returns the value in the row of the table whose key is key. It uses the options
// [WithDialect], [WithBackoff] and [WithRequestTimeout].
func NewVersioned[T any](db *sql.DB, columns Columns, key any, opts ...Option) (*Versioned[T], error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	r, err := c.dialect.replacements(
		"{table}", columns.Table, "{key}", columns.Key, "{value}", columns.Value, "{version}", columns.Version)
	if err != nil {
		return nil, err
	}
	if c.dialect == MySQL {
		c.start.check = c.start.checkModes
	}
	const set = `UPDATE {table} SET {value} = $2, {version} = {version} + 1 WHERE {key} = $1`
	return &Versioned[T]{
		c:    c,
		key:  key,
		load: c.dialect.statement(`SELECT {value}, {version} FROM {table} WHERE {key} = $1`, r...),
		swap: c.dialect.statement(set+` AND {version} = $3`, r...),
		set:  c.dialect.statement(set, r...),
	}, nil
}

// fail returns err with the attempt and the key of the value, or nil if err is nil.
func (v *Versioned[T]) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqllock: Versioned.%s of %v in %v: %w", op, v.key, v.c.dialect, err)
}

// Load returns the value and its version. Without a row the error matches [sql.ErrNoRows].
func (v *Versioned[T]) Load(ctx context.Context) (value T, version uint64, err error) {
	value, version, err = v.get(ctx)
	return value, version, v.fail("Load", err)
}

func (v *Versioned[T]) get(ctx context.Context) (value T, version uint64, err error) {
	if err := adapter.Check(ctx); err != nil {
		return value, 0, err
	}
	if err := v.c.start.fit(ctx); err != nil {
		return value, 0, err
	}
	var n int64
	err = v.c.query(ctx, v.load, []any{v.key}, &value, &n)
	return value, uint64(n), err
}

// exec reports whether a statement has changed the row, and carries it out once at most.
func (v *Versioned[T]) exec(ctx context.Context, s *statement, args ...any) (bool, error) {
	if err := adapter.Check(ctx); err != nil {
		return false, err
	}
	if err := v.c.start.fit(ctx); err != nil {
		return false, err
	}
	n, err := v.c.once(ctx, s == v.swap, func(ctx context.Context, on database) (int64, error) {
		return s.exec(ctx, on, args...)
	})
	return n > 0, err
}

// CompareAndSwap sets the value and adds 1 to the version if the version is expected, and reports
// whether it was. Without a row it reports false as well. After an error that is not the database's
// answer it is unknown whether the value was set.
func (v *Versioned[T]) CompareAndSwap(ctx context.Context, expected uint64, value T) (bool, error) {
	swapped, err := v.exec(ctx, v.swap, v.key, value, int64(expected))
	return swapped, v.fail("CompareAndSwap", err)
}

// Store sets the value and adds 1 to the version, whatever they were. Without a row the error
// matches [sql.ErrNoRows]. With a driver of PostgreSQL other than pgx, it fails if it gets a
// connection that ended while it was idle, because nobody can know that nothing was set.
func (v *Versioned[T]) Store(ctx context.Context, value T) error {
	stored, err := v.exec(ctx, v.set, v.key, value)
	if err == nil && !stored {
		err = sql.ErrNoRows
	}
	return v.fail("Store", err)
}

// Update replaces the value by the result of fn, and returns the new value. It reads value and
// version, calls fn, and commits the result if the version is still the same. If not, it pauses,
// see [WithBackoff], and starts over with the current value. fn is called any number of times, also
// by several goroutines at once, and must do nothing but compute.
//
// The end of ctx ends the retries: the error matches ctx.Err() and its cause. An error of fn is
// returned as it is. Nothing is committed in these cases. After an error of the connection it
// is unknown whether the value was set; it is set at most once.
func (v *Versioned[T]) Update(ctx context.Context, fn func(T) (T, error)) (T, error) {
	const op = "Update"
	var none T
	if fn == nil {
		return none, v.fail(op, locks.ErrNilFunc)
	}
	for pause := v.c.min; ; pause = min(pause+pause/2+1, v.c.max) {
		value, version, err := v.get(ctx)
		if err == nil {
			if value, err = fn(value); err != nil {
				return none, err
			}
			var swapped bool
			if swapped, err = v.exec(ctx, v.swap, v.key, value, int64(version)); swapped {
				return value, nil
			}
		}
		switch {
		case ctx == nil:
			return none, v.fail(op, err)
		case err != nil && ctx.Err() != nil:
			return none, v.fail(op, adapter.Ended(ctx))
		case err != nil && (errors.Is(err, ErrTimeout) || v.c.dialect.classify(err) != busy):
			return none, v.fail(op, err)
		}
		adapter.Sleep(ctx, adapter.Jitter(max(pause, time.Millisecond)))
	}
}

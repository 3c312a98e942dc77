package sqllock_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/sqllock"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	t.Parallel()
	db := inSQLite.open(t, inSQLite.serve(t))
	table := fresh()
	c, a := tableKind.open(t, db, sqllock.WithTable(table)), someone()
	l := c.Mutex("it")
	err := l.UnlockContext(a)
	require.EqualError(t, err, `sqllock: unlock "it": lock not held by the caller`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.EqualError(t, c.Mutex("").LockContext(a), `sqllock: lock "": the name is empty`)
	_, err = c.Mutex("\xff").TryLockContext(a)
	require.EqualError(t, err, `sqllock: try lock "\xff": the name is not text, which is UTF-8 without NUL`)
	require.EqualError(t, c.Mutex(strings.Repeat("n", 256)).LockContext(a),
		`sqllock: lock "`+strings.Repeat("n", 64)+`...": the name has 256 bytes, at most 255 are allowed`)

	row, err := sqllock.NewRow(db)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, row.Close(background)) })
	require.EqualError(t, row.Do(a, "", func(*sql.Tx) error { return nil }),
		`sqllock: Do with lock "": the name is empty`)

	require.NoError(t, l.LockContext(a))
	h, err := l.Hold(a)
	require.NoError(t, err)
	loseRow(t, inSQLite, db, table)
	err = l.UnlockContext(a)
	require.EqualError(t, err, `sqllock: unlock "it": lease lost`)
	require.ErrorIs(t, err, locks.ErrLost)
	require.Error(t, h.Err())
}

package sqllock_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	t.Parallel()
	db := inSQLite.open(t, inSQLite.serve(t))
	table := fresh()
	c, a := tableKind.open(t, db, sqllock.WithTable(table)), adaptertest.Owner()
	l := c.Mutex("it")
	err := l.UnlockContext(a)
	require.EqualError(t, err, `sqllock: unlock "it": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.EqualError(t, c.Mutex("").LockContext(a), `sqllock: lock "": the name is empty`)
	_, err = c.Mutex("\xff").TryLockContext(a)
	require.EqualError(t, err, `sqllock: try lock "\xff": the name is not text, which is UTF-8 without NUL`)
	require.EqualError(t, c.Mutex(strings.Repeat("n", 256)).LockContext(a),
		`sqllock: lock "`+strings.Repeat("n", 64)+`...": the name has 256 bytes, at most 255 are allowed`)

	row, err := sqllock.NewRow(db)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, row.Close(background)) })
	require.EqualError(t, row.Do(a, "", nothing),
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

func TestARefusedConnectionIsNoForeignTable(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inPgx, inPq} {
		for _, setting := range []string{
			"default_transaction_isolation=nonsense", "timezone=Nowhere", "no_such_setting=1", "9x=1",
		} {
			t.Run(d.name+" "+setting, func(t *testing.T) {
				t.Parallel()
				where, table := d.serve(t), sqllock.WithTable(fresh())
				for _, k := range kinds {
					k.open(t, d.open(t, where), table) // makes the tables
					c, _ := k.make(d.set(t, where, setting), table, calm)
					t.Cleanup(func() { c.Close(background) })
					_, err := c.Mutex("it").TryLockContext(background)
					require.Error(t, err)
					require.NotErrorIs(t, err, locks.ErrForeign, k.name)
					require.NotContains(t, err.Error(), "layout")
					require.ErrorIs(t, err, lease.ErrRefused, k.name)
				}
			})
		}
	}
}

func TestAReadOnlyDatabaseIsNotCalledUnreachable(t *testing.T) {
	t.Parallel()
	where, table := inPgx.serve(t), sqllock.WithTable(fresh())
	db := inPgx.set(t, where, "default_transaction_read_only=on")
	for _, k := range inTables {
		k.open(t, inPgx.open(t, where), table) // makes the tables
		c, _ := k.make(db, table, calm)
		t.Cleanup(func() { c.Close(background) })
		var err error
		for limit := time.Second; limit < 2*time.Minute; limit *= 2 { // the database has to answer once
			ctx, cancel := context.WithTimeout(adaptertest.Owner(), limit)
			err = c.Mutex("it").LockContext(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if strings.Contains(err.Error(), "read-only") {
				break
			}
		}
		require.ErrorContains(t, err, "read-only")
		require.NotContains(t, err.Error(), "reached", k.name)
	}
}

func TestAnExhaustedPoolIsNamedInTheError(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		db := d.open(t, d.serve(t))
		c := k.open(t, db, sqllock.WithTable(fresh()), sqllock.WithRequestTimeout(time.Second))
		db.SetMaxOpenConns(1)
		only, err := db.Conn(background)
		require.NoError(t, err)
		defer only.Close()
		_, err = c.Mutex("it").TryLockContext(background)
		require.ErrorIs(t, err, sqllock.ErrTimeout)
		require.ErrorContains(t, err, "pool")
		require.NotContains(t, err.Error(), "no answer")
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
	})
}

func TestARefusedLockNeverAsksTheDatabase(t *testing.T) {
	t.Parallel()
	db := inSQLite.open(t, inSQLite.serve(t))
	testbed.Refused(t, tableKind.open(t, db).Locker("a\x00b"), "the name is not text")
}

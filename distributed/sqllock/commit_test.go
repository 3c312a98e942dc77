package sqllock_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/sqllock"
)

// obstructed is a file of SQLite with a journal, of which COMMIT is refused while a reader reads.
type obstructed struct {
	db, reader *sql.DB
	table      string
	where      string
}

func obstruct(t *testing.T) obstructed {
	t.Helper()
	where, table := inSQLite.serve(t), fresh()
	open := func() *sql.DB {
		db, err := sql.Open(inSQLite.driver, "file:"+where+"?_pragma=busy_timeout(1)&_pragma=synchronous(OFF)")
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
	o := obstructed{open(), open(), table, where}
	o.db.SetMaxOpenConns(1) // the next work gets the same connection
	resource(t, o.db, table+"_res", inSQLite)
	return o
}

// read keeps the file from being written until the result is called.
func (o obstructed) read(t *testing.T) (end func()) {
	t.Helper()
	tx, err := o.reader.Begin()
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow("SELECT n FROM "+o.table+"_res").Scan(&n))
	return sync.OnceFunc(func() { require.NoError(t, tx.Rollback()) })
}

// kept checks that what the program writes next through the same connection is there for others.
func (o obstructed) kept(t *testing.T) {
	t.Helper()
	_, err := o.db.Exec("UPDATE " + o.table + "_res SET n = 7")
	require.NoError(t, err)
	var n int
	require.NoError(t, o.reader.QueryRow("SELECT n FROM "+o.table+"_res").Scan(&n))
	require.Equal(t, 7, n)
}

func TestAWorksRefusedCommitLeavesNoTransactionOpen(t *testing.T) {
	t.Parallel()
	o := obstruct(t)
	r := openRow(t, o.db, sqllock.WithTable(o.table))
	end := o.read(t)
	defer end()
	write := func(tx *sql.Tx) error {
		_, err := tx.Exec("UPDATE " + o.table + "_res SET n = 1")
		return err
	}
	require.ErrorContains(t, r.Do(background, "it", write), "locked")
	end()
	o.kept(t)
}

func TestAGatesRefusedCommitLeavesNoTransactionOpen(t *testing.T) {
	t.Parallel()
	o := obstruct(t)
	g, err := sqllock.NewGate(o.db, sqllock.Columns{Table: o.table + "_res", Key: "id", Token: "token"})
	require.NoError(t, err)
	end := o.read(t)
	defer end()
	require.ErrorContains(t, g.Do(background, 1, 5, nothing), "locked")
	end()
	o.kept(t)
}

func TestAQueuesRefusedCommitLeavesNoTransactionOpen(t *testing.T) {
	t.Parallel()
	o := obstruct(t)
	table := sqllock.WithTable(o.table)
	c := queueKind.open(t, o.db, table, sqllock.WithRequestTimeout(3*time.Second))
	end := o.read(t)
	defer end()
	ctx, cancel := context.WithTimeout(adaptertest.Owner(), 7*time.Second) // some requests are refused until their ends
	defer cancel()
	require.ErrorIs(t, c.Mutex("it").LockContext(ctx), context.DeadlineExceeded)
	end()
	unpinned(t, o.db)
	o.kept(t)
	l, a := queueKind.open(t, o.db, table).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

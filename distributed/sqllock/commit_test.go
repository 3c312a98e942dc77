package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
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

// TestWorkThatGoesOnAfterItsTransactionIsNotDone is about MySQL, which carries statements out
// without a transaction once a deadlock has undone it.
func TestWorkThatGoesOnAfterItsTransactionIsNotDone(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inMaria, inMySQL} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db, table := d.open(t, d.serve(t)), fresh()
			res := table + "_res"
			resource(t, db, res, d)
			const most = 30
			for id := 2; id <= most; id++ {
				_, err := db.Exec(fmt.Sprintf("INSERT INTO %s (id, n, version, token) VALUES (%d, 0, 0, 0)", res, id))
				require.NoError(t, err)
			}
			r := openRow(t, db, sqllock.WithTable(table))
			g, err := sqllock.NewGate(db, sqllock.Columns{Table: res, Key: "id", Token: "token"})
			require.NoError(t, err)
			add := func(tx interface {
				ExecContext(context.Context, string, ...any) (sql.Result, error)
			}, id int) error {
				_, err := tx.ExecContext(background, fmt.Sprintf("UPDATE %s SET n = n + 1 WHERE id = %d", res, id))
				return err
			}
			ends := map[string]func(t *testing.T, tx *sql.Tx){
				"a statement that commits": func(t *testing.T, tx *sql.Tx) {
					_, err := tx.Exec("CREATE TABLE " + fresh() + " (id INT)")
					require.NoError(t, err)
				},
				"a deadlock": func(t *testing.T, tx *sql.Tx) {
					other, err := db.Begin()
					require.NoError(t, err)
					defer other.Rollback()
					for id := 4; id <= most; id++ { // the server undoes the transaction that has changed less
						require.NoError(t, add(other, id))
					}
					require.NoError(t, add(tx, 3))
					waiting := inBackground(func() error { return add(other, 3) })
					require.Error(t, add(tx, 4))
					require.NoError(t, <-waiting)
				},
			}
			for name, end := range ends {
				t.Run(name, func(t *testing.T) {
					work := func(tx *sql.Tx) error {
						end(t, tx)
						return add(tx, 1) // no error
					}
					require.ErrorIs(t, r.Do(background, "it", work), locks.ErrLost)
					require.ErrorIs(t, g.Do(background, 2, 7, work), locks.ErrLost)
					require.NoError(t, r.Do(background, "it", func(tx *sql.Tx) error { return add(tx, 1) }))
					require.NoError(t, g.Do(background, 2, 7, func(tx *sql.Tx) error { return add(tx, 1) }))
				})
			}
			unpinned(t, db)
		})
	}
}

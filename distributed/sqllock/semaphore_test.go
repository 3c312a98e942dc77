package sqllock_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestSemaphoresPassTheKit(t *testing.T) {
	t.Parallel()
	beds := map[string]bed{
		"PostgreSQL with a listener": {database: inPgx, listens: true},
		"MariaDB":                    {database: inMaria},
		"SQLite":                     {database: inSQLite},
	}
	if longRun() {
		beds["PostgreSQL with pq"] = bed{database: inPq}
		beds["MariaDB as ORACLE"] = bed{database: inMaria, setting: sqlMode("ORACLE")}
		beds["MySQL"] = bed{database: inMySQL}
		beds["pgbouncer"] = bed{database: bouncer, setting: "&default_query_exec_mode=exec", pooled: true}
	}
	for name, b := range beds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.proveSemaphores(t)
		})
	}
}

// proveSemaphores runs the kit on the semaphores of a Table.
func (b bed) proveSemaphores(t *testing.T) {
	table := fresh()
	var where func(tb testing.TB) string
	if b.dialect == sqllock.SQLite { // a file for each check, since a file has one writer at a time
		dir := t.TempDir()
		where = func(tb testing.TB) string { return filepath.Join(dir, program(tb)) }
	} else {
		server := b.serve(t)
		where = func(testing.TB) string { return server }
		tableKind.open(t, b.dial(t, leasetest.NewLink(t), server, "kit"), sqllock.WithTable(table)) // makes the tables
	}
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			db := b.dial(tb, link, where(tb), program(tb))
			var inner driver.Store
			all := []sqllock.Option{
				sqllock.WithTable(table), kitLimit,
				sqllock.WithLeaseOptions(lease.WithWrapper(func(of driver.Store) driver.Store {
					inner = of
					return of
				})),
			}
			if b.listens {
				all = append(all, sqllock.WithListener(pgxnotify.Listener(db)))
			}
			tableKind.open(tb, db, all...).(*sqllock.Table).Semaphore("it", 1) // opens the Store of semaphores
			lc, err := lease.New(inner, opts...)
			require.NoError(tb, err)
			tb.Cleanup(func() { lc.Close(background) })
			return lc
		},
		Semaphore: leasetest.Semaphores,
		Timeout:   time.Minute,
		Limit:     20 * time.Second, // on a busy machine, and less than a lease
		Parallel:  4,
		Rest: func(tb testing.TB, name string) {
			mark := "?"
			if b.dialect == sqllock.Postgres {
				mark = "$1"
			}
			db := b.dial(tb, leasetest.NewLink(tb), where(tb), "kit")
			s := tableKind.open(tb, db, sqllock.WithTable(table)).(*sqllock.Table).Semaphore(name, 1)
			ctx, cancel := context.WithTimeout(background, testbed.Hang)
			defer cancel()
			p, err := s.AcquireContext(ctx, 1)
			if !assert.NoError(tb, err, "the permits are not free") {
				return
			}
			assert.NoError(tb, p.ReleaseContext(ctx))
			var n int
			query := "SELECT count(*) FROM " + table + "_permits WHERE permits > 0 AND name = "
			assert.NoError(tb, db.QueryRow(query+mark, name).Scan(&n))
			assert.Zero(tb, n, "permits")
		},
	})
}

func TestALockAndASemaphoreAreApart(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), sqllock.WithTable(fresh())
			a := tableKind.open(t, d.open(t, where), table).(*sqllock.Table)
			b := tableKind.open(t, d.open(t, where), table).(*sqllock.Table)
			owner := adaptertest.Owner()
			adaptertest.Hold(t, a.Mutex("it"), owner)
			p, err := a.Semaphore("it", 3).AcquireContext(background, 3)
			require.NoError(t, err)
			_, ok, err := b.Semaphore("it", 3).TryAcquireContext(background, 1)
			require.NoError(t, err)
			require.False(t, ok)
			require.NoError(t, a.Mutex("it").UnlockContext(owner))
			require.NoError(t, p.Err())
			require.NoError(t, p.ReleaseContext(background))
			q, _, err := b.Semaphore("it", 3).TryAcquireContext(background, 1)
			require.NoError(t, err)
			require.EqualValues(t, 2, q.Token())
			require.NoError(t, q.ReleaseContext(background))
		})
	}
}

// A renewal that is not committed yet keeps a row whose lease seems to be over.
func TestARenewalUnderWayKeepsItsPermits(t *testing.T) {
	t.Parallel()
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			a := tableKind.open(t, db, sqllock.WithTable(table), term(time.Hour)).(*sqllock.Table)
			p, err := a.Semaphore("it", 1).AcquireContext(background, 1)
			require.NoError(t, err)
			now := "UTC_TIMESTAMP(6)"
			if d.dialect == sqllock.Postgres {
				now = "clock_timestamp()"
			}
			_, err = db.Exec("UPDATE " + table + "_permits SET ends = " + now)
			require.NoError(t, err)
			tx, err := db.Begin()
			require.NoError(t, err)
			defer tx.Rollback()
			_, err = tx.Exec("UPDATE " + table + "_permits SET ends = " + now + " + INTERVAL '1' HOUR")
			require.NoError(t, err)
			got := inBackground(func() error {
				_, ok, err := a.Semaphore("it", 1).TryAcquireContext(background, 1)
				if ok {
					t.Error("it was given twice")
				}
				return err
			})
			soon(t, func() bool { return deleting(db, d, table) > 0 })
			require.NoError(t, tx.Commit())
			require.NoError(t, <-got)
			require.NoError(t, p.ReleaseContext(background))
		})
	}
}

func TestWithoutItsTablesASemaphoreIsRefused(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			table := fresh()
			db := d.open(t, d.serve(t))
			a := tableKind.open(t, db, sqllock.WithTable(table)).(*sqllock.Table)
			_, err := db.Exec("DROP TABLE " + table + "_permits")
			require.NoError(t, err)
			_, err = a.Semaphore("it", 1).AcquireContext(background, 1)
			require.ErrorIs(t, err, sqllock.ErrNoTable)
			owner := adaptertest.Owner()
			adaptertest.Hold(t, a.Mutex("it"), owner)
			require.NoError(t, a.Mutex("it").UnlockContext(owner))
			require.NoError(t, a.CreateSchema(background))
			p, err := a.Semaphore("it", 1).AcquireContext(background, 1)
			require.NoError(t, err)
			require.NoError(t, p.ReleaseContext(background))
		})
	}
}

func TestInspectTellsTheHoldersOfPermits(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			a := tableKind.open(t, d.open(t, d.serve(t)), sqllock.WithTable(fresh())).(*sqllock.Table)
			s := a.Semaphore("it", 5)
			for n := range int64(2) {
				p, err := s.AcquireContext(background, n+2)
				require.NoError(t, err)
				defer p.ReleaseContext(background)
			}
			info, err := s.Inspect(background)
			require.NoError(t, err)
			require.Len(t, info.Holders, 2)
			for i, h := range info.Holders {
				require.EqualValues(t, i+2, h.Permits)
				require.EqualValues(t, i+1, h.Token)
				require.Equal(t, os.Getpid(), h.PID)
			}
		})
	}
}

func TestAClosedTableHasNoSemaphores(t *testing.T) {
	t.Parallel()
	a := tableKind.open(t, inSQLite.open(t, newFile(t)), sqllock.WithTable(fresh())).(*sqllock.Table)
	require.NoError(t, a.Close(background))
	_, err := a.Semaphore("it", 1).AcquireContext(background, 1)
	require.ErrorIs(t, err, locks.ErrClosed)
}

// deleting returns how many statements delete rows of a table now.
func deleting(db *sql.DB, d database, table string) (n int) {
	query := "SELECT count(*) FROM information_schema.PROCESSLIST WHERE info LIKE 'DELETE FROM `" + table + "%'"
	if d.dialect == sqllock.Postgres {
		query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%" + table + "%'"
	}
	db.QueryRow(query).Scan(&n)
	return n
}

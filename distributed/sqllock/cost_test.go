package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/sqllock"
)

// ofAPair are the statements of a lock and an unlock that nobody else wants, after the first.
var ofAPair = map[string]map[sqllock.Dialect]int{
	tableKind.name: {sqllock.Postgres: 2, sqllock.MySQL: 2}, // acquire, release
	queueKind.name: {sqllock.Postgres: 2, sqllock.MySQL: 8}, // the same; two transactions in MySQL
	advisory.name:  {sqllock.Postgres: 2, sqllock.MySQL: 2}, // take, give back
	blocking.name:  {sqllock.Postgres: 2, sqllock.MySQL: 2},
}

// least returns the least of five counts: a client tells of itself now and then.
func least(count func() int) int {
	n := count()
	for range 4 {
		n = min(n, count())
	}
	return n
}

// The driver sends a statement and its arguments in one round trip if it is told to.
func TestALockAndAnUnlockTakeFewRoundTripsInMySQL(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inMaria, inMySQL} {
		for _, k := range allKinds {
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				db, err := sql.Open(d.driver, dsn(d.dialect, d.serve(t))+"&interpolateParams=true")
				require.NoError(t, err)
				t.Cleanup(func() { db.Close() })
				db.SetMaxOpenConns(1)
				l, a := k.open(t, db, sqllock.WithTable(fresh())).Mutex(fresh()), adaptertest.Owner()
				pair := func() {
					adaptertest.Hold(t, l, a)
					require.NoError(t, l.UnlockContext(a))
				}
				pair()
				require.Equal(t, ofAPair[k.name][d.dialect], least(func() int {
					before := roundTrips(t, db)
					pair()
					return roundTrips(t, db) - before - 1 // which counts itself
				}))
			})
		}
	}
}

// roundTrips returns how many statements the only session of db has sent, and prepared.
func roundTrips(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	rows, err := db.Query("SHOW SESSION STATUS WHERE Variable_name IN ('Questions', 'Com_stmt_prepare')")
	require.NoError(t, err)
	defer rows.Close()
	found := 0
	for ; rows.Next(); found++ {
		var name string
		var one int
		require.NoError(t, rows.Scan(&name, &one))
		n += one
	}
	require.Equal(t, 2, found)
	return n
}

func TestALockAndAnUnlockTakeFewStatementsInPostgres(t *testing.T) {
	t.Parallel()
	where := inPgx.serve(t)
	for _, k := range allKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var c counted
			l, a := k.open(t, c.open(t, where, "cost"), sqllock.WithTable(fresh())).Mutex(fresh()), adaptertest.Owner()
			pair := func() {
				adaptertest.Hold(t, l, a)
				require.NoError(t, l.UnlockContext(a))
			}
			pair()
			require.Equal(t, ofAPair[k.name][sqllock.Postgres], least(func() int {
				c.forget()
				pair()
				return len(c.statements())
			}), c.statements())
		})
	}
}

// A name with quotes or other signs of SQL is only a name: it neither ends nor changes a statement.
func TestNamesMeanThemselvesInMySQL(t *testing.T) {
	t.Parallel()
	names := []string{
		`it's`, `"it"`, "`it`", `it\`, `\'; DROP TABLE x; -- `, "?", "??", "$1", "%s", "x'00'", "日本", "\xc3\x28", "a\tb\nc",
		"/*", "é", " ",
	}
	for _, d := range []database{inMaria, inMySQL} {
		for _, mode := range []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"} {
			t.Run(fmt.Sprintf("%s %s", d.name, mode), func(t *testing.T) {
				t.Parallel()
				to := dsn(d.dialect, d.serve(t))
				if mode != "" {
					to += sqlMode(mode)
				}
				db, err := sql.Open(d.driver, to)
				require.NoError(t, err)
				t.Cleanup(func() { db.Close() })
				table := fresh()
				locks := tableKind.open(t, db, sqllock.WithTable(table)).(*sqllock.Table)
				a := adaptertest.Owner()
				var held []string
				for _, name := range names {
					if err := locks.Mutex(name).LockContext(a); err != nil {
						require.ErrorContains(t, err, "name", "%q", name) // such as for what is no UTF-8
						continue
					}
					held = append(held, name)
					var n int
					count := "SELECT COUNT(*) FROM " + table + " WHERE name = ? AND owner IS NOT NULL"
					require.NoError(t, db.QueryRow(count, []byte(name)).Scan(&n))
					require.Equal(t, 1, n, "%q", name)
				}
				require.Greater(t, len(held), len(names)-4)
				listed, err := locks.Names(context.Background(), "")
				require.NoError(t, err)
				require.ElementsMatch(t, held, listed)
				for _, name := range held {
					require.NoError(t, locks.Mutex(name).UnlockContext(a), "%q", name)
				}
			})
		}
	}
}

// A lock of a program that sends its key as an argument excludes ours, and the other way round.
func TestKeysOfAdvisoryLocksAreThoseOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inMaria, inMySQL} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db := d.open(t, d.serve(t))
			others := d.open(t, d.serve(t))
			others.SetMaxOpenConns(1)
			all := advisory.open(t, db)
			for _, name := range []string{fresh(), fresh() + `'s`, fresh() + `\'"`} {
				l, a := all.Mutex(name), adaptertest.Owner()
				adaptertest.Hold(t, l, a)
				var free, got int
				require.NoError(t, others.QueryRow("SELECT IS_FREE_LOCK(?)", name).Scan(&free))
				require.Zero(t, free, name)
				require.NoError(t, l.UnlockContext(a))
				require.NoError(t, others.QueryRow("SELECT GET_LOCK(?, 0)", name).Scan(&got))
				require.Equal(t, 1, got, name)
				ok, err := l.TryLockContext(a)
				require.NoError(t, err)
				require.False(t, ok, name)
				require.NoError(t, others.QueryRow("SELECT RELEASE_LOCK(?)", name).Scan(&got))
			}
		})
	}
}

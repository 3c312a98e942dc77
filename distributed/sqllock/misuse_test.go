package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

// deaf is a listener.
func deaf(context.Context, string, func(), func(string)) error { return nil }

func TestRefusedOptionsAreErrors(t *testing.T) {
	db := inSQLite.open(t, inSQLite.serve(t))
	for name, opt := range map[string]sqllock.Option{
		"no lease":           term(0),
		"negative lease":     term(-time.Second),
		"short lease":        term(time.Microsecond),
		"no backoff":         sqllock.WithBackoff(0, 0),
		"backward backoff":   sqllock.WithBackoff(2, 1),
		"no request timeout": sqllock.WithRequestTimeout(0),
		"no dialect":         sqllock.WithDialect(99),
		"no table":           sqllock.WithTable(""),
		"a listener":         sqllock.WithListener(deaf),
		"a short wait":       sqllock.WithQueue(1),
		"no key":             sqllock.WithKey(nil),
	} {
		_, err := sqllock.NewTable(db, opt)
		require.Error(t, err, name)
		if _, err = sqllock.NewRow(db, opt); !strings.HasSuffix(name, "lease") { // it has none
			require.Error(t, err, name)
		}
	}
	_, err := sqllock.NewTable(nil)
	require.Error(t, err)
	_, err = sqllock.NewRow(nil)
	require.Error(t, err)
	_, err = sqllock.NewAdvisory(nil)
	require.Error(t, err)
	_, err = sqllock.NewAdvisory(db)
	require.ErrorIs(t, err, sqllock.ErrUnsupported)
	l := tableKind.open(t, db).Mutex("it", lease.WithFixedTTL(time.Microsecond))
	require.Error(t, l.LockContext(background))
	require.ErrorIs(t, l.LockContext(nil), locks.ErrNilContext)
}

func TestTableNamesThatAreNoIdentifiersAreRefused(t *testing.T) {
	db := inSQLite.open(t, inSQLite.serve(t))
	for _, name := range []string{
		"", " ", "a b", "a-b", "1a", "a;DROP TABLE x", `a"`, "a`", "a'", "a.b.c", ".", "a.", ".a", "ä", "a\x00", "a--", strings.Repeat("a", 49), `"a"`,
		strings.Repeat("a'", 1<<16),
	} {
		_, err := sqllock.NewTable(db, sqllock.WithTable(name))
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 1000)
		for _, d := range []sqllock.Dialect{sqllock.Postgres, sqllock.MySQL, sqllock.SQLite} {
			if _, err := sqllock.Schema(d, name); name != "" {
				require.Error(t, err, name)
			}
		}
		good := sqllock.Columns{Table: "t", Key: "k", Value: "v", Version: "n"}
		for _, at := range []*string{&good.Table, &good.Key, &good.Value, &good.Version} {
			kept := *at
			*at = name
			_, err := sqllock.NewVersioned[int](db, good, 1)
			require.Error(t, err, name)
			*at = kept
		}
	}
}

// hostile are names that are text, and nothing but names.
var hostile = []string{
	"'; DROP TABLE sql_locks; --", `"; DELETE FROM sql_locks; --`, "` OR 1=1",
	"a' OR 'a'='a", "%", "_", `\`, `\'`, "$1",
	"?", "{locks}", ":name", "@x",
	"A", "a", "a ", " a", "ä", "Ä", "ß", "ss", "\u00e4", "a\u0308", "\n", "日本", "sqllock:",
	strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("ä", 127),
	strings.Repeat("y", 255),
}

func TestHostileNamesAreNothingButDifferentNames(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		where, table := d.serve(t), sqllock.WithTable(fresh())
		c, rival := k.open(t, d.open(t, where), table), k.open(t, d.open(t, where), table)
		a := adaptertest.Owner()
		prefix := ""
		if k.ofSessions() {
			prefix = fresh()[1:] // the names are the whole server's
		}
		taken := make(map[string]bool)
		for _, name := range hostile {
			if len(prefix+name) > 255 || taken[name] {
				continue
			}
			taken[name] = true
			ok, err := rival.Mutex(prefix + name).TryLockContext(a)
			require.NoError(t, err, "%q", name)
			require.True(t, ok, "%q is somebody else's", name)
		}
		for name := range taken {
			ok, err := c.Mutex(prefix + name).TryLockContext(a)
			require.NoError(t, err)
			require.False(t, ok, "%q", name)
		}
		for name := range taken {
			require.NoError(t, rival.Mutex(prefix+name).UnlockContext(a), "%q", name)
		}
	})
	t.Run("no names", func(t *testing.T) {
		c := tableKind.open(t, inSQLite.open(t, inSQLite.serve(t)))
		long, huge := strings.Repeat("z", 256), strings.Repeat("z", 1<<20)
		for _, name := range []string{"", "\x00", "a\x00b", "\xff", long, huge} {
			err := c.Mutex(name).LockContext(background)
			require.Error(t, err)
			require.Less(t, len(err.Error()), 200)
			ok, err := c.Mutex(name).TryLockContext(background)
			require.Error(t, err)
			require.False(t, ok)
			require.ErrorIs(t, c.Mutex(name).UnlockContext(background), locks.ErrNotHeld)
		}
	})
}

func TestMissingAndForeignTablesAreErrors(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inSQLite, inPgx, inPq, inMaria, inMySQL} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			const rest = "owner VARBINARY(64), token BIGINT NOT NULL, ends DATETIME(6) NOT NULL"
			db, table := d.open(t, d.serve(t)), fresh()
			for _, more := range [][]sqllock.Option{nil, {sqllock.WithQueue(0)}} {
				c, err := sqllock.NewTable(db, append(more, sqllock.WithTable(table))...)
				require.NoError(t, err)
				err = c.Mutex("it").LockContext(background)
				require.ErrorIs(t, err, sqllock.ErrNoTable)
				require.Regexp(t, `^sqllock: lock "it": no such table: call CreateSchema, `, err)
				require.NotContains(t, err.Error(), "lease:")
				_, err = c.Mutex("other").TryLockContext(background)
				require.ErrorIs(t, err, sqllock.ErrNoTable)
				require.NoError(t, c.Close(background))
			}
			if d.dialect != sqllock.SQLite {
				r, err := sqllock.NewRow(db, sqllock.WithTable(table))
				require.NoError(t, err)
				err = r.Do(background, "it", nothing)
				require.ErrorIs(t, err, sqllock.ErrNoTable)
				require.Regexp(t, `^sqllock: Do with lock "it": no such table: call CreateSchema, `, err)
				unpinned(t, db)
				require.NoError(t, r.Close(background))
			}
			for _, columns := range []string{
				"name VARCHAR(99) PRIMARY KEY, whose VARCHAR(99), token BIGINT, ends BIGINT",
				"id INTEGER PRIMARY KEY",
				"name VARCHAR(99) NOT NULL, owner VARCHAR(99), token BIGINT, ends BIGINT", // not unique
				"name VARCHAR(99) PRIMARY KEY, owner VARCHAR(99), token BIGINT, ends BIGINT, more BIGINT NOT NULL",
				// In MySQL, names of other case, with spaces behind, or with the same beginning
				// are the same.
				"name VARCHAR(255) PRIMARY KEY, " + rest,
				"name VARCHAR(255) COLLATE utf8mb4_bin PRIMARY KEY, " + rest,
				"name VARBINARY(32) PRIMARY KEY, " + rest,
				"name VARBINARY(255), UNIQUE (name(9)), " + rest,
			} {
				if d.dialect != sqllock.MySQL && strings.Contains(columns, "DATETIME") {
					continue
				}
				table := fresh()
				_, err := db.Exec("CREATE TABLE " + table + " (" + columns + ")")
				require.NoError(t, err)
				l := tableKind.open(t, db, sqllock.WithTable(table)).Mutex("it") // has it as it is
				for range 2 {
					require.ErrorIs(t, l.LockContext(background), locks.ErrForeign, columns)
				}
				var n int
				require.NoError(t, db.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
				require.Zero(t, n)
			}
		})
	}
}

func TestAnEngineWithoutTransactionsIsRefused(t *testing.T) {
	t.Parallel()
	for _, on := range []struct {
		database
		engine string
	}{{inMaria, "MyISAM"}, {inMaria, "MEMORY"}, {inMaria, "Aria"}, {inMySQL, "MyISAM"}, {inMySQL, "MEMORY"}} {
		engine := on.engine
		for suffix, refused := range map[string][]kind{
			"":       {tableKind, queueKind},
			"_queue": {queueKind},
			"_rows":  nil, // a Row
		} {
			t.Run(on.name+" "+engine+suffix, func(t *testing.T) {
				t.Parallel()
				where, table := on.serve(t), fresh()
				db := on.open(t, where)
				for _, name := range []string{table, "test." + table} { // with and without a schema
					queueKind.open(t, db, sqllock.WithTable(name)) // makes the tables
					_, err := db.Exec("ALTER TABLE " + name + suffix + " ENGINE=" + engine)
					require.NoError(t, err)
					for range 2 {
						r := openRow(t, on.open(t, where), sqllock.WithTable(name))
						err := r.Do(background, "it", nothing)
						if suffix == "_rows" {
							require.ErrorIs(t, err, locks.ErrForeign)
							require.ErrorContains(t, err, engine)
						} else {
							require.NoError(t, err)
						}
					}
					for _, k := range inTables {
						for _, c := range []provider{
							k.open(t, on.open(t, where), sqllock.WithTable(name)),
							k.open(t, on.open(t, where), sqllock.WithTable(name)),
						} {
							_, err := c.Mutex("it").TryLockContext(background)
							if slices.ContainsFunc(refused, func(r kind) bool { return r.name == k.name }) {
								require.ErrorIs(t, err, locks.ErrForeign, k.name)
								require.ErrorContains(t, err, engine, k.name)
							} else {
								require.NoError(t, err, k.name)
								require.NoError(t, c.Mutex("it").UnlockContext(background), k.name)
							}
						}
					}
				}
			})
		}
	}
}

func TestThePrintedSchemaIsTheCreatedOne(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db, table := d.open(t, d.serve(t)), fresh()
			schema, err := sqllock.Schema(d.dialect, table)
			require.NoError(t, err)
			for statement := range strings.SplitSeq(strings.TrimSuffix(schema, ";\n"), ";\n") {
				_, err := db.Exec(statement)
				require.NoError(t, err, statement)
			}
			for _, k := range inTables {
				c, err := k.make(db, sqllock.WithTable(table))
				require.NoError(t, err)
				a := adaptertest.Owner()
				adaptertest.Hold(t, c.Mutex("it"), a)
				require.NoError(t, c.Mutex("it").UnlockContext(a))
				require.NoError(t, c.Close(background))
			}
			r, err := sqllock.NewRow(db, sqllock.WithTable(table))
			require.NoError(t, err)
			require.NoError(t, r.Do(background, "it", nothing))
			require.NoError(t, r.Close(background))
		})
	}
	schema, err := sqllock.Schema(sqllock.SQLite, "")
	require.NoError(t, err)
	require.Contains(t, schema, `"sql_locks"`)
}

func TestManyMayMakeTheTablesAtOnce(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			errs := make(chan error)
			for range 8 {
				go func() {
					c, err := sqllock.NewTable(d.open(t, where), sqllock.WithTable(table))
					if err == nil {
						err = c.CreateSchema(background)
						c.Close(background)
					}
					errs <- err
				}()
			}
			for range 8 {
				require.NoError(t, <-errs)
			}
		})
	}
}

// opaque is a driver that tells nothing about itself.
type opaque struct{ driver.Driver }

func TestADriverThatTellsNothingNeedsADialect(t *testing.T) {
	where := inSQLite.serve(t)
	db := sql.OpenDB(connector{opaque{inSQLite.open(t, where).Driver()}, dsn(sqllock.SQLite, where)})
	defer db.Close()
	_, err := sqllock.NewTable(db)
	require.ErrorContains(t, err, "WithDialect")
	l := tableKind.open(t, db, sqllock.WithDialect(sqllock.SQLite)).Mutex("it")
	require.False(t, held(t, l))
}

type connector struct {
	d   driver.Driver
	dsn string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.d }

func TestAFixedLeaseEndsByItself(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
		pool := d.open(t, where)
		l := k.open(t, pool, table, term(time.Minute)).Mutex(name, lease.WithFixedTTL(2*short))
		rival := k.open(t, d.open(t, where), table).Mutex(name)
		a, b := adaptertest.Owner(), adaptertest.Owner()
		h := adaptertest.Patiently(t, l, a)
		adaptertest.Hold(t, rival, b)
		require.ErrorIs(t, h.Err(), locks.ErrLost, "told before")
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		require.NoError(t, rival.UnlockContext(b))
		unpinned(t, pool) // the connection is given back too
	})
}

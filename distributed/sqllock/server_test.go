package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// database is a database on which tests run.
type database struct {
	name    string
	driver  string
	dialect sqllock.Dialect
	// serve returns where it is: an address, or a file.
	serve func(tb testing.TB) string
}

var (
	inSQLite = database{"SQLite", "sqlite", sqllock.SQLite, newFile}
	inPgx    = database{"PostgreSQL with pgx", "pgx", sqllock.Postgres, sharedPostgres}
	inPq     = database{"PostgreSQL with pq", "postgres", sqllock.Postgres, sharedPostgres}
	inMaria  = database{"MariaDB", "mysql", sqllock.MySQL, sharedMariaDB}
	inMySQL  = database{"MySQL", "mysql", sqllock.MySQL, sharedMySQL}

	everywhere = []database{inSQLite, inPgx, inMaria, inMySQL}
	servers    = []database{inPgx, inMaria, inMySQL}
)

func newFile(tb testing.TB) string { return filepath.Join(tb.TempDir(), "db") }

// dsn returns what sql.Open gets. A request that gets no answer is not waited for long.
func dsn(d sqllock.Dialect, where string) string {
	return dsnOf(d, where, map[sqllock.Dialect]string{sqllock.Postgres: "postgres", sqllock.MySQL: "root"}[d])
}

// dsnOf is dsn for a user.
func dsnOf(d sqllock.Dialect, where, user string) string {
	switch d {
	case sqllock.Postgres:
		return "postgres://" + user + "@" + where + "/postgres?sslmode=disable&connect_timeout=20"
	case sqllock.MySQL:
		return user + "@tcp(" + where + ")/test?timeout=20s&readTimeout=30s"
	}
	return "file:" + where + "?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
}

// open returns a pool of connections to where that is closed with the test, after what is
// registered later.
func (d database) open(tb testing.TB, where string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(d.driver, dsn(d.dialect, where))
	require.NoError(tb, err)
	db.SetMaxIdleConns(idle)
	tb.Cleanup(func() { db.Close() })
	return db
}

// idle is how many connections a pool of a test keeps. The default is 2: a crowd of goroutines
// would connect for most of its requests. For each connection, PostgreSQL starts a process, which
// takes 4 ms of processor time. Tests of broken connections, and the kit, keep the default.
const idle = 16

// quiet is a driver that tells of broken connections by errors only.
func quiet() {
	mysql.SetLogger(nowhere{})
}

type nowhere struct{}

func (nowhere) Print(...any) {}

var tables atomic.Int64

// run is part of the names of this process. Others may use the same server, before or after it.
var run = rand.Uint32()

// fresh returns the name of a table that nobody has.
func fresh() string { return fmt.Sprintf("t%x_%d", run, tables.Add(1)) }

// The servers that tests share are started by the first that needs them.

// forever stands for all tests.
type forever struct {
	testing.TB
	mu       sync.Mutex // different servers start at the same time
	cleanups []func()
}

func (f *forever) Cleanup(c func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cleanups = append(f.cleanups, c)
}

func (f *forever) Helper()                      {}
func (f *forever) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (f *forever) Fatalf(s string, args ...any) { panic(fmt.Sprintf(s, args...)) }
func (f *forever) Errorf(s string, args ...any) { panic(fmt.Sprintf(s, args...)) }
func (f *forever) FailNow()                     { panic("failed") }

func (f *forever) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

var (
	common         = &forever{}
	postgresServer = sync.OnceValue(func() string { return startPostgres(common).Addr() })
	mariaDBServer  = sync.OnceValue(func() string { return startMariaDB(common).Addr() })
	mySQLServer    = sync.OnceValue(func() string { return startMySQL(common).Addr() })
)

// Tests share a server that is there already, too, if a variable has its URL.

func sharedPostgres(tb testing.TB) string {
	if given := testbed.GivenURL(tb, "LOCKS_POSTGRES_URL"); given != nil {
		return given.Host
	}
	testbed.Lookup(tb, "initdb", "/usr/lib/postgresql/*/bin")
	return postgresServer()
}

func sharedMariaDB(tb testing.TB) string {
	if given := testbed.GivenURL(tb, "LOCKS_MARIADB_URL"); given != nil {
		return given.Host
	}
	testbed.Lookup(tb, "mariadb-install-db")
	return mariaDBServer()
}

func sharedMySQL(tb testing.TB) string {
	if given := testbed.GivenURL(tb, "LOCKS_MYSQL_URL"); given != nil {
		return given.Host
	}
	testbed.Built(tb, "mysql-server")
	return mySQLServer()
}

func startPostgres(tb testing.TB, env ...string) *testbed.SQLServer {
	tb.Helper()
	return testbed.StartPostgres(tb, answers("pgx", sqllock.Postgres), env...)
}

func startMariaDB(tb testing.TB, env ...string) *testbed.SQLServer {
	tb.Helper()
	return testbed.StartMariaDB(tb, answers("mysql", sqllock.MySQL), env...)
}

func startMySQL(tb testing.TB, env ...string) *testbed.SQLServer {
	tb.Helper()
	return testbed.StartMySQL(tb, answers("mysql", sqllock.MySQL), env...)
}

// start runs a server of the test's own.
func (d database) start(tb testing.TB, env ...string) *testbed.SQLServer {
	tb.Helper()
	switch d.name {
	case inMaria.name:
		return startMariaDB(tb, env...)
	case inMySQL.name:
		return startMySQL(tb, env...)
	}
	return startPostgres(tb, env...)
}

// answers returns a function that asks a server.
func answers(driver string, d sqllock.Dialect) func(addr string) error {
	return func(addr string) error {
		db, err := sql.Open(driver, dsn(d, addr))
		if err != nil {
			return err
		}
		defer db.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second) // then it is asked again
		defer cancel()
		return db.PingContext(ctx)
	}
}

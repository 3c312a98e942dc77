package sqllock_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/jucgo/locks/distributed/internal/testbed"
	"github.com/jucgo/locks/distributed/sqllock"
)

// database is one that tests run on.
type database struct {
	name    string
	driver  string
	dialect sqllock.Dialect
	// serve returns where it is: an address, or a file.
	serve func(tb testing.TB) string
}

var (
	inSQLite = database{"SQLite", "sqlite", sqllock.SQLite, func(tb testing.TB) string { return filepath.Join(tb.TempDir(), "db") }}
	inPgx    = database{"PostgreSQL with pgx", "pgx", sqllock.Postgres, sharedPostgres}
	inPq     = database{"PostgreSQL with pq", "postgres", sqllock.Postgres, sharedPostgres}
	inMaria  = database{"MariaDB", "mysql", sqllock.MySQL, sharedMariaDB}

	everywhere = []database{inSQLite, inPgx, inMaria}
	servers    = []database{inPgx, inMaria}
)

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

// open returns a pool of connections to where that is closed with the test, after what is registered later.
func (d database) open(tb testing.TB, where string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(d.driver, dsn(d.dialect, where))
	require.NoError(tb, err)
	tb.Cleanup(func() { db.Close() })
	return db
}

// quiet is a driver that tells of broken connections by errors only.
func quiet() {
	mysql.SetLogger(nowhere{})
}

type nowhere struct{}

func (nowhere) Print(...any) {}

var tables atomic.Int64

// fresh returns the name of a table that nobody has.
func fresh() string { return fmt.Sprintf("t%d_%d", os.Getpid(), tables.Add(1)) }

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

// home returns a directory that is not inside of one that only root may enter, as tb.TempDir's is.
func home(tb testing.TB) string {
	dir, err := os.MkdirTemp("", "sqllock")
	require.NoError(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (f *forever) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

var (
	common         = &forever{}
	postgresServer = sync.OnceValue(func() string { addr, _ := startPostgres(common); return addr })
	mariaDBServer  = sync.OnceValue(func() string { addr, _ := startMariaDB(common); return addr })
)

// postgresDir is where Debian has the programs of PostgreSQL, of whatever version.
const postgresDir = "/usr/lib/postgresql/*/bin"

func sharedPostgres(tb testing.TB) string {
	testbed.Lookup(tb, "initdb", postgresDir)
	return postgresServer()
}

func sharedMariaDB(tb testing.TB) string {
	testbed.Lookup(tb, "mariadb-install-db")
	return mariaDBServer()
}

// command returns one that runs as a user who is not root, and owns dir.
func command(tb testing.TB, name, dir, program string, args ...string) *exec.Cmd {
	tb.Helper()
	if os.Getuid() != 0 {
		return exec.Command(program, args...)
	}
	u, err := user.Lookup(name)
	require.NoError(tb, err)
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	require.NoError(tb, os.Chown(dir, uid, gid))
	path, err := exec.LookPath("setpriv")
	require.NoError(tb, err)
	return exec.Command(path, append([]string{"--reuid", name, "--regid", name, "--clear-groups", "--pdeathsig", "KILL", program}, args...)...)
}

func startPostgres(tb testing.TB, env ...string) (string, *server) {
	tb.Helper()
	initdb := testbed.Lookup(tb, "initdb", postgresDir)
	postgres := testbed.Lookup(tb, "postgres", postgresDir)
	dir := home(tb)
	data := filepath.Join(dir, "data")
	out, err := command(tb, "postgres", dir, initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync").CombinedOutput()
	require.NoError(tb, err, string(out))
	port := testbed.Port(tb)
	cmd := command(tb, "postgres", dir, postgres, "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", dir, "-c", "fsync=off",
		"-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=400", "-c", "log_min_messages=panic",
		"-c", "log_destination=stderr")
	cmd.Env = append(os.Environ(), env...)
	s := &server{tb: tb, cmd: cmd, driver: "pgx", dialect: sqllock.Postgres, port: port}
	return s.run(), s
}

// server is a server that can be started again.
type server struct {
	*testbed.Process
	tb      testing.TB
	cmd     *exec.Cmd
	driver  string
	dialect sqllock.Dialect
	port    int
}

// run starts it with what it has on its disk, and returns its address when it answers.
func (s *server) run() string {
	s.tb.Helper()
	cmd := exec.Command(s.cmd.Path, s.cmd.Args[1:]...)
	cmd.Env, cmd.Stderr = s.cmd.Env, s.cmd.Stderr
	p := testbed.Start(s.tb, cmd)
	if s.dialect == sqllock.Postgres {
		s.tb.Cleanup(func() { // before it is killed, so that it leaves no shared memory
			select {
			case <-p.Done():
			default:
				p.Signal(syscall.SIGQUIT)
				p.Wait()
			}
		})
	}
	s.Process = p
	return await(s.tb, s.driver, s.dialect, s.port)
}

// restart ends it as an administrator does, and starts it again.
func (s *server) restart() {
	s.tb.Helper()
	s.Signal(map[sqllock.Dialect]syscall.Signal{sqllock.Postgres: syscall.SIGINT, sqllock.MySQL: syscall.SIGTERM}[s.dialect])
	s.Wait()
	s.run()
}

func startMariaDB(tb testing.TB, env ...string) (string, *server) {
	tb.Helper()
	install := testbed.Lookup(tb, "mariadb-install-db")
	mariadbd := testbed.Lookup(tb, "mariadbd", "/usr/sbin")
	dir := home(tb)
	data := filepath.Join(dir, "data")
	out, err := command(tb, "mysql", dir, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal").CombinedOutput()
	require.NoError(tb, err, string(out))
	port := testbed.Port(tb)
	cmd := command(tb, "mysql", dir, mariadbd, "--no-defaults", "--datadir="+data, "--port="+strconv.Itoa(port),
		"--bind-address=127.0.0.1", "--socket="+filepath.Join(dir, "s"), "--pid-file="+filepath.Join(dir, "pid"), "--skip-name-resolve",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--max-connections=400",
		"--innodb-buffer-pool-load-at-startup=OFF", "--tmpdir="+dir, "--log-warnings=0")
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), complaints{}
	s := &server{tb: tb, cmd: cmd, driver: "mysql", dialect: sqllock.MySQL, port: port}
	return s.run(), s
}

// complaints passes on what a server says when it comes to grief.
type complaints struct{}

func (complaints) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if bytes.Contains(line, []byte("[ERROR]")) || bytes.Contains(line, []byte("signal")) || bytes.Contains(line, []byte("assert")) {
			os.Stderr.Write(line)
		}
	}
	return len(p), nil
}

// await returns the address of a server when it answers.
func await(tb testing.TB, driver string, d sqllock.Dialect, port int) string {
	tb.Helper()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	db, err := sql.Open(driver, dsn(d, addr))
	require.NoError(tb, err)
	defer db.Close()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = db.PingContext(context.Background()); err == nil {
			return addr
		}
		if time.Now().After(end) {
			tb.Fatalf("%v does not answer: %v", d, err)
		}
	}
}

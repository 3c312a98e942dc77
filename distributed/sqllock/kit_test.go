package sqllock_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"hash/fnv"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
	"github.com/jucgo/locks/internal/test/testbed"
)

// bed is a database as the kit's clients use it.
type bed struct {
	database
	setting string // added to what dsn returns
	journal string // of SQLite, WAL if it is empty
	listens bool   // waiters hear of releases
	pooled  bool   // a pooler gives each transaction the session that is free
}

// dial returns a client's pool of connections, which go through its network.
func (b bed) dial(tb testing.TB, link *leasetest.Link, where, program string) *sql.DB {
	tb.Helper()
	to := dsn(b.dialect, where) + b.setting
	if b.dialect == sqllock.Postgres {
		to += "&application_name=" + program
	}
	if b.journal != "" {
		to = strings.Replace(to, "WAL", b.journal, 1)
	}
	var db *sql.DB
	switch b.driver {
	case "pgx":
		config, err := pgx.ParseConfig(to)
		require.NoError(tb, err)
		config.DialFunc = link.DialContext
		db = stdlib.OpenDB(*config)
	case "postgres":
		connector, err := pq.NewConnector(to)
		require.NoError(tb, err)
		connector.Dialer(pqDialer{link})
		db = sql.OpenDB(connector)
	case "mysql":
		config, err := mysql.ParseDSN(to)
		require.NoError(tb, err)
		config.DialFunc = link.DialContext
		connector, err := mysql.NewConnector(config)
		require.NoError(tb, err)
		db = sql.OpenDB(connector)
	default: // there is no network
		var err error
		db, err = sql.Open(b.driver, to)
		require.NoError(tb, err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

// pqDialer is a link as pq has it.
type pqDialer struct{ *leasetest.Link }

func (d pqDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, time.Minute)
}

func (d pqDialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(background, timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d pqDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.Link.DialContext(ctx, network, address)
	return impatient{c}, err
}

// impatient is a connection of pq, which waits for the server also when a context has ended.
type impatient struct{ net.Conn }

func (c impatient) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// program is the name that the clients of a check have in the database.
func program(tb testing.TB) string {
	h := fnv.New64()
	h.Write([]byte(tb.Name()))
	return fmt.Sprintf("kit%x", h.Sum64())
}

// kitLimit ends a request of a client that the kit has cut off.
var kitLimit = sqllock.WithRequestTimeout(10 * time.Second)

// prove runs the kit on a kind of lock.
func (k kind) prove(t *testing.T, b bed) {
	t.Helper()
	table := fresh()
	var where func(tb testing.TB) string
	limit := kitLimit
	if b.dialect == sqllock.SQLite { // a file for each check, since a file has one writer at a time
		limit = calm // nothing in the kit's network delays a request
		dir := t.TempDir()
		where = func(tb testing.TB) string { return filepath.Join(dir, program(tb)) }
	} else {
		server := b.serve(t)
		where = func(testing.TB) string { return server }
		k.open(t, b.dial(t, leasetest.NewLink(t), server, "kit"), sqllock.WithTable(table)) // makes the tables
	}
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			db := b.dial(tb, link, where(tb), program(tb))
			all := []sqllock.Option{
				sqllock.WithTable(table), limit, sqllock.WithLeaseOptions(opts...),
			}
			if b.listens {
				all = append(all, sqllock.WithListener(pgxnotify.Listener(db)))
			}
			return k.open(tb, db, all...)
		},
		Timeout:            time.Minute,
		Limit:              20 * time.Second, // on a busy machine, and less than a lease
		Parallel:           4,
		FIFO:               k.name == queueKind.name,
		LateLeave:          k.name == blocking.name,
		EndsWithConnection: k.ofSessions(),
		Rest: func(tb testing.TB, name string) {
			db := b.dial(tb, leasetest.NewLink(tb), where(tb), "kit")
			k.rest(tb, b, db, table, name)
		},
	})
}

// rest checks that the clients of a check have left nothing of a lock but its token.
func (k kind) rest(tb testing.TB, b bed, db *sql.DB, table, name string) {
	count := func(query string, args ...any) (n int) {
		err := db.QueryRow(query, args...).Scan(&n)
		require.NoError(tb, err)
		return n
	}
	if b.dialect == sqllock.Postgres && !b.pooled {
		end := time.Now().Add(testbed.Hang) // the server notices the end of a connection a little later
		const sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
		for count(sessions, program(tb)) > 0 && time.Now().Before(end) {
			time.Sleep(5 * time.Millisecond)
		}
		assert.Zero(tb, count(sessions, program(tb)), "connections of closed clients")
	}
	l, a := k.open(tb, db, sqllock.WithTable(table)).Mutex(name), adaptertest.Owner()
	ctx, cancel := context.WithTimeout(a, testbed.Hang)
	defer cancel()
	if !assert.NoError(tb, l.LockContext(ctx), "the lock is not free") {
		return
	}
	assert.NoError(tb, l.UnlockContext(a))
	mark := "?"
	if b.dialect == sqllock.Postgres {
		mark = "$1"
	}
	switch k.name {
	case queueKind.name:
		assert.Zero(tb, count("SELECT count(*) FROM "+table+"_queue WHERE name = "+mark, name), "places in the queue")
		fallthrough
	case tableKind.name:
		const held = " WHERE name = %s AND owner IS NOT NULL"
		assert.Zero(tb, count("SELECT count(*) FROM "+table+fmt.Sprintf(held, mark), name), "a holder")
	}
}

// sqlMode is a setting of MariaDB's sessions.
func sqlMode(mode string) string { return "&sql_mode=%27" + mode + "%27" }

// beds are all databases on which the kit proves kinds of locks. The short run takes the databases
// of short, the long run all.
var beds = []struct {
	name       string
	bed        bed
	short, all []kind
}{
	{"PostgreSQL with a listener", bed{database: inPgx, listens: true}, kinds, kinds},
	// The server ends the statements of clients that were cut off, as WithBlockingWait advises.
	{"PostgreSQL", bed{database: inPgx, setting: "&client_connection_check_interval=1000"}, []kind{blocking}, allKinds},
	{"PostgreSQL with pq", bed{database: inPq}, nil, allKinds},
	{"pgbouncer", bed{database: bouncer, setting: "&default_query_exec_mode=exec", pooled: true},
		[]kind{queueKind}, inTables},
	{"MariaDB", bed{database: inMaria}, []kind{blocking}, allKinds},
	{"MariaDB as ORACLE", bed{database: inMaria, setting: sqlMode("ORACLE")}, []kind{tableKind}, kinds},
	{"MariaDB with simultaneous assignment", bed{database: inMaria, setting: sqlMode("SIMULTANEOUS_ASSIGNMENT")},
		[]kind{queueKind}, kinds},
	{"MySQL", bed{database: inMySQL}, []kind{queueKind, advisory}, allKinds},
	{"SQLite", bed{database: inSQLite}, []kind{queueKind}, inTables},
	{"SQLite with a rollback journal", bed{database: inSQLite, journal: "DELETE"}, []kind{tableKind}, inTables},
}

var inTables = []kind{tableKind, queueKind}

// longRun says whether the flag -leasetest.long is set.
func longRun() bool {
	f := flag.Lookup("leasetest.long")
	return f.Value.String() != f.DefValue
}

func TestLocksPassTheKit(t *testing.T) {
	t.Parallel()
	room := make(chan struct{}, 3) // each has many clients
	for _, b := range beds {
		some := b.short
		if longRun() {
			some = b.all
		}
		for _, k := range some {
			t.Run(k.name+" on "+b.name, func(t *testing.T) {
				t.Parallel()
				room <- struct{}{}
				defer func() { <-room }()
				k.prove(t, b.bed)
			})
		}
	}
}

var poolerServer = sync.OnceValue(func() string {
	return testbed.StartPgbouncer(common, postgresServer(), answers("pgx", sqllock.Postgres),
		"max_client_conn = 1000", "default_pool_size = 20").Addr()
})

// sharedPooler is in front of the shared PostgreSQL.
func sharedPooler(tb testing.TB) string {
	testbed.Lookup(tb, "pgbouncer", "/usr/sbin")
	testbed.Lookup(tb, "initdb", "/usr/lib/postgresql/*/bin") // the server behind it is of the tests alone
	return poolerServer()
}

var bouncer = database{"PostgreSQL behind pgbouncer", "pgx", sqllock.Postgres, sharedPooler}

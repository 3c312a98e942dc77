package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/sqllock"
)

// observed is a connection whose statements are seen before they are sent.
type observed struct {
	driver.Conn
	see func(query string)
}

func (o observed) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	o.see(q)
	return o.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (o observed) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	o.see(q)
	return o.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

// observer connects to a server.
type observer struct {
	driver driver.Driver
	dsn    string
	see    func(query string)
}

func (o observer) Connect(context.Context) (driver.Conn, error) {
	c, err := o.driver.Open(o.dsn)
	return observed{c, o.see}, err
}

func (o observer) Driver() driver.Driver { return o.driver }

// checks returns a pool of connections to MariaDB, and how many checks of the layout it has
// sent.
func checks(t *testing.T, where string) (*sql.DB, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	db := sql.OpenDB(observer{inMaria.open(t, where).Driver(), dsn(sqllock.MySQL, where), func(query string) {
		if strings.Contains(query, "@@autocommit") {
			n.Add(1)
		}
	}})
	t.Cleanup(func() { db.Close() })
	return db, &n
}

func TestTheLayoutCheckOpensNoOtherTables(t *testing.T) {
	t.Parallel()
	db := inMaria.open(t, startMariaDB(t).Addr())
	db.SetMaxOpenConns(1)
	exec := func(statement string) {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
	exec("CREATE DATABASE other")
	for i := range 300 {
		exec(fmt.Sprintf("CREATE TABLE other.t%d (id INTEGER PRIMARY KEY) ENGINE=MEMORY", i))
		exec(fmt.Sprintf("CREATE TABLE test.t%d (id INTEGER PRIMARY KEY) ENGINE=MEMORY", i))
	}
	queueKind.open(t, db) // makes the tables
	exec("FLUSH TABLES")
	opened := func() (n int) {
		var name string
		require.NoError(t, db.QueryRow("SHOW GLOBAL STATUS LIKE 'Opened_table_definitions'").Scan(&name, &n))
		return n
	}
	c, err := sqllock.NewTable(db, append(patient(), sqllock.WithQueue(0))...)
	require.NoError(t, err)
	defer c.Close(background)
	before := opened()
	require.False(t, held(t, c.Mutex("it")))
	require.Less(t, opened()-before, 50)
}

func TestAllCallersShareOneLayoutCheck(t *testing.T) {
	t.Parallel()
	db, n := checks(t, inMaria.serve(t))
	table := sqllock.WithTable(fresh())
	tableKind.open(t, db, table)
	c, err := sqllock.NewTable(db, append(patient(), table)...)
	require.NoError(t, err)
	defer c.Close(background)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a := adaptertest.Owner()
			if l := c.Mutex(fmt.Sprint("it", i)); assert.NoError(t, l.LockContext(a)) {
				assert.NoError(t, l.UnlockContext(a))
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, n.Load())
}

func TestALayoutCheckOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	p := leasetest.NewProxy(t, inMaria.serve(t))
	db, n := checks(t, p.Addr())
	table := sqllock.WithTable(fresh())
	tableKind.open(t, db, table)
	c, err := sqllock.NewTable(db, append(patient(), table)...)
	require.NoError(t, err)
	defer c.Close(background)
	p.Delay(3 * time.Second) // for each answer, of which the check has two
	ctx, cancel := context.WithCancel(adaptertest.Owner())
	first := inBackground(func() error { return c.Mutex("one").LockContext(ctx) })
	soon(t, func() bool { return n.Load() == 1 })
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	p.Heal()
	a, second := adaptertest.Owner(), c.Mutex("two")
	require.NoError(t, second.LockContext(a))
	require.NoError(t, second.UnlockContext(a))
	require.EqualValues(t, 1, n.Load())
}

func TestASilentServersLayoutCheckEndsInTime(t *testing.T) {
	t.Parallel()
	p := leasetest.NewProxy(t, inMaria.serve(t))
	db, n := checks(t, p.Addr())
	table := sqllock.WithTable(fresh())
	tableKind.open(t, db, table)
	c, err := sqllock.NewTable(db, table, sqllock.WithRequestTimeout(5*time.Second))
	require.NoError(t, err)
	defer c.Close(background)
	p.Cut()
	err = c.Mutex("it").LockContext(background)
	require.ErrorIs(t, err, sqllock.ErrTimeout)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, 1, n.Load())
	p.Heal()
	p.Reset()
	a := adaptertest.Owner()
	soon(t, func() bool { return c.Mutex("it").LockContext(a) == nil })
	require.NoError(t, c.Mutex("it").UnlockContext(a))
}

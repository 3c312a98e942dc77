package sqllock_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

// account is a user of a database, whose server begins and ends to refuse it something.
type account struct {
	database
	where, table string
	admin        *sql.DB
	user         string
}

// newAccount makes a user that has all rights on the tables of a name, which it makes too.
func newAccount(t *testing.T, d database, where string) *account {
	t.Helper()
	a := &account{database: d, where: where, table: fresh(), admin: d.open(t, where), user: fresh()}
	queueKind.open(t, a.admin, sqllock.WithTable(a.table))
	if d.dialect == sqllock.Postgres {
		a.exec(t, "CREATE ROLE "+a.user+" LOGIN",
			"GRANT ALL ON "+a.table+", "+a.table+"_queue, "+a.table+"_rows, "+a.table+"_clients TO "+a.user,
			"GRANT ALL ON SEQUENCE "+a.table+"_queue_id_seq TO "+a.user)
	} else {
		a.exec(t, "CREATE USER "+a.user+"@'%' IDENTIFIED BY 'first'", "GRANT ALL ON test.* TO "+a.user+"@'%'")
	}
	return a
}

func (a *account) exec(tb testing.TB, statements ...string) {
	tb.Helper()
	for _, s := range statements {
		_, err := a.admin.Exec(s)
		require.NoError(tb, err, s)
	}
}

// open returns a Table of the user, with a connection for each request.
func (a *account) open(t *testing.T) *sqllock.Table {
	t.Helper()
	login := a.user
	if a.dialect == sqllock.MySQL {
		login += ":first"
	}
	db, err := sql.Open(a.driver, dsnOf(a.dialect, a.where, login))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(-1)
	c, err := sqllock.NewTable(db, append(patient(), sqllock.WithTable(a.table), term(time.Hour))...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(background) })
	return c
}

func TestARefusedLoginCostsAReleaseItsOwnTime(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inPgx, inPq, inMaria, inMySQL} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			u := newAccount(t, d, d.serve(t))
			c, rival := u.open(t), tableKind.open(t, u.admin, sqllock.WithTable(u.table))
			a, b := adaptertest.Owner(), adaptertest.Owner()
			adaptertest.Hold(t, c.Mutex("mine"), a)
			adaptertest.Hold(t, rival.Mutex("theirs"), b)
			waiter := inBackground(func() error { return c.Mutex("theirs").LockContext(a) })
			soon(t, refused(c, "theirs"))
			refuse, accept := "ALTER ROLE "+u.user+" NOLOGIN", "ALTER ROLE "+u.user+" LOGIN"
			if d.dialect == sqllock.MySQL {
				change := "ALTER USER " + u.user + "@'%' IDENTIFIED BY "
				refuse, accept = change+"'second'", change+"'first'"
			}

			u.exec(t, refuse)
			err := c.Mutex("mine").UnlockContext(a)
			assert.ErrorIs(t, err, locks.ErrLost)
			assert.ErrorIs(t, err, lease.ErrLogin)
			_, err = c.Mutex("new").TryLockContext(adaptertest.Owner())
			assert.ErrorIs(t, err, lease.ErrLogin)
			assert.ErrorIs(t, c.Mutex("new").LockContext(adaptertest.Owner()), lease.ErrLogin)
			require.NoError(t, rival.Mutex("theirs").UnlockContext(b))
			u.exec(t, accept)
			require.NoError(t, <-waiter)
			require.NoError(t, c.Mutex("theirs").UnlockContext(a))
			soon(t, func() bool { return !held(t, rival.Mutex("mine")) }, "the lease lasts an hour")
		})
	}
}

// restraints are ways in which an administrator stops writes, and allows them again.
var restraints = []struct {
	name     string
	database database
	on, off  []string
}{
	{"read only", inPgx, []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"},
		[]string{"ALTER SYSTEM SET default_transaction_read_only = off", "SELECT pg_reload_conf()"}},
	{"read only", inMaria, []string{"SET GLOBAL read_only = on"}, []string{"SET GLOBAL read_only = off"}},
	{"read only", inMySQL, []string{"SET GLOBAL read_only = on"}, []string{"SET GLOBAL read_only = off"}},
	{"offline", inMySQL, []string{"SET GLOBAL offline_mode = on"}, []string{"SET GLOBAL offline_mode = off"}},
}

func TestHoldsAndWaitersOutlastARestrainedServer(t *testing.T) {
	t.Parallel()
	for _, by := range restraints {
		t.Run(by.database.name+" is "+by.name, func(t *testing.T) {
			t.Parallel()
			u := newAccount(t, by.database, by.database.start(t).Addr())
			c, rival := u.open(t), u.open(t)
			a, b := adaptertest.Owner(), adaptertest.Owner()
			adaptertest.Hold(t, c.Mutex("it"), a)
			h := adaptertest.Hold(t, c.Mutex("kept"), a)
			waiter := inBackground(func() error { return rival.Mutex("it").LockContext(b) })
			soon(t, refused(rival, "it"))
			u.exec(t, by.on...)
			first := inBackground(func() error { return c.Mutex("first").LockContext(b) })
			release := inBackground(func() error { return c.Mutex("it").UnlockContext(a) })
			time.Sleep(500 * time.Millisecond)
			for _, got := range []<-chan error{first, waiter, release} {
				select {
				case err := <-got:
					require.Fail(t, "does not go on", "%v", err)
				default:
				}
			}
			require.NoError(t, h.Err())
			u.exec(t, by.off...)
			require.NoError(t, <-first)
			require.NoError(t, <-release)
			require.NoError(t, <-waiter)
			require.NoError(t, rival.Mutex("it").UnlockContext(b))
			require.NoError(t, c.Mutex("first").UnlockContext(b))
			require.NoError(t, c.Mutex("kept").UnlockContext(a))
		})
	}
}

func TestWaitersOutlastADatabaseThatTakesNoLogins(t *testing.T) {
	t.Parallel()
	for _, by := range []struct {
		database
		refuse, accept string
	}{
		{inPgx, "ALTER DATABASE %s ALLOW_CONNECTIONS false", "ALTER DATABASE %s ALLOW_CONNECTIONS true"},
		{inPq, "ALTER DATABASE %s ALLOW_CONNECTIONS false", "ALTER DATABASE %s ALLOW_CONNECTIONS true"},
		{inMaria, "DROP DATABASE %s", "CREATE DATABASE %s"}, // the table is in another one
		{inMySQL, "DROP DATABASE %s", "CREATE DATABASE %s"},
	} {
		t.Run(by.name, func(t *testing.T) {
			t.Parallel()
			where, name, table := by.serve(t), fresh(), fresh()
			admin := by.open(t, where)
			exec := func(s string) {
				_, err := admin.Exec(fmt.Sprintf(s, name))
				require.NoError(t, err)
			}
			exec("CREATE DATABASE %s")
			if by.dialect == sqllock.MySQL {
				table = "test." + table
			}
			inside := func(idle int) provider {
				url := strings.NewReplacer("/postgres?", "/"+name+"?", "/test?", "/"+name+"?").Replace(dsn(by.dialect, where))
				db, err := sql.Open(by.driver, url)
				require.NoError(t, err)
				t.Cleanup(func() { db.Close() })
				db.SetMaxIdleConns(idle)
				return tableKind.open(t, db, sqllock.WithTable(table))
			}
			c, rival := inside(-1), inside(2)
			a, b := adaptertest.Owner(), adaptertest.Owner()
			h := adaptertest.Hold(t, c.Mutex("mine"), a)
			adaptertest.Hold(t, rival.Mutex("theirs"), b)
			waiter := inBackground(func() error { return c.Mutex("theirs").LockContext(a) })
			soon(t, refused(c, "theirs"))

			exec(by.refuse)
			_, err := c.Mutex("new").TryLockContext(adaptertest.Owner())
			assert.ErrorIs(t, err, lease.ErrLogin)
			time.Sleep(300 * time.Millisecond) // the waiter asks several times
			require.NoError(t, h.Err())
			assert.Empty(t, waiter)
			exec(by.accept)
			require.NoError(t, rival.Mutex("theirs").UnlockContext(b))
			require.NoError(t, <-waiter)
			require.NoError(t, c.Mutex("theirs").UnlockContext(a))
			require.NoError(t, c.Mutex("mine").UnlockContext(a))
		})
	}
}

func TestWaitersOutlastAFileThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(t *testing.T, file string) (mend func()){
		"its folder is away": func(t *testing.T, file string) func() {
			away := filepath.Dir(file) + " away"
			require.NoError(t, os.Rename(filepath.Dir(file), away))
			return func() { require.NoError(t, os.Rename(away, filepath.Dir(file))) }
		},
		"it is no database": func(t *testing.T, file string) func() {
			// At no time is the file away or empty: either is a database without tables.
			require.NoError(t, os.Link(file, file+" away"))
			require.NoError(t, os.WriteFile(file+" spoilt", bytes.Repeat([]byte("no database "), 1000), 0o600))
			require.NoError(t, os.Rename(file+" spoilt", file))
			return func() { require.NoError(t, os.Rename(file+" away", file)) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "of the test")
			require.NoError(t, os.Mkdir(dir, 0o700))
			file := filepath.Join(dir, "db")
			pool := func() *sql.DB {
				db, err := sql.Open(inSQLite.driver, "file:"+file+"?_pragma=busy_timeout(1000)&_pragma=synchronous(OFF)")
				require.NoError(t, err)
				t.Cleanup(func() { db.Close() })
				db.SetMaxIdleConns(-1)
				return db
			}
			c, rival := tableKind.open(t, pool()), tableKind.open(t, pool())
			a, b := adaptertest.Owner(), adaptertest.Owner()
			h := adaptertest.Hold(t, c.Mutex("mine"), a)
			adaptertest.Hold(t, rival.Mutex("theirs"), b)
			waiter := inBackground(func() error { return c.Mutex("theirs").LockContext(a) })
			soon(t, refused(c, "theirs"))

			mend := spoil(t, file)
			_, err := c.Mutex("new").TryLockContext(adaptertest.Owner())
			assert.ErrorIs(t, err, lease.ErrLogin)
			time.Sleep(300 * time.Millisecond) // the waiter asks several times
			require.NoError(t, h.Err())
			assert.Empty(t, waiter)
			mend()
			require.NoError(t, rival.Mutex("theirs").UnlockContext(b))
			require.NoError(t, <-waiter)
			require.NoError(t, c.Mutex("theirs").UnlockContext(a))
			require.NoError(t, c.Mutex("mine").UnlockContext(a))
		})
	}
}

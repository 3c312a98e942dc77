package sqllock_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
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
	patient := sqllock.WithLeaseOptions(lease.WithReleaseTimeout(30 * time.Second))
	c, err := sqllock.NewTable(db, sqllock.WithTable(a.table), calm, patient)
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
			c, rival := u.open(t), tableKind.open(t, u.admin, sqllock.WithTable(u.table), calm)
			a, b := someone(), someone()
			hold(t, c.Mutex("mine"), a)
			hold(t, rival.Mutex("theirs"), b)
			waiter := inBackground(func() error { return c.Mutex("theirs").LockContext(a) })
			soon(t, refused(c, "theirs"))
			refuse, accept := "ALTER ROLE "+u.user+" NOLOGIN", "ALTER ROLE "+u.user+" LOGIN"
			if d.dialect == sqllock.MySQL {
				change := "ALTER USER " + u.user + "@'%' IDENTIFIED BY "
				refuse, accept = change+"'second'", change+"'first'"
			}

			u.exec(t, refuse)
			began := time.Now()
			err := c.Mutex("mine").UnlockContext(a)
			assert.ErrorIs(t, err, locks.ErrLost)
			assert.ErrorIs(t, err, lease.ErrLogin)
			_, err = c.Mutex("new").TryLockContext(someone())
			assert.ErrorIs(t, err, lease.ErrLogin)
			assert.ErrorIs(t, c.Mutex("new").LockContext(someone()), lease.ErrLogin)
			require.NoError(t, rival.Mutex("theirs").UnlockContext(b))
			u.exec(t, accept)
			refusedFor := time.Since(began)
			require.NoError(t, <-waiter)
			require.NoError(t, c.Mutex("theirs").UnlockContext(a))
			soon(t, func() bool { return !held(t, rival.Mutex("mine")) })
			require.Less(t, time.Since(began), 20*time.Second+2*refusedFor, "the lease lasts 30 seconds")
		})
	}
}

func TestHoldsAndWaitersOutlastAReadOnlyServer(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inPgx, inMaria, inMySQL} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			u := newAccount(t, d, d.start(t).Addr())
			c, rival := u.open(t), u.open(t)
			a, b := someone(), someone()
			hold(t, c.Mutex("it"), a)
			waiter := inBackground(func() error { return rival.Mutex("it").LockContext(b) })
			soon(t, refused(rival, "it"))
			set := func(on string) {
				if d.dialect == sqllock.Postgres {
					u.exec(t, "ALTER SYSTEM SET default_transaction_read_only = "+on, "SELECT pg_reload_conf()")
				} else {
					u.exec(t, "SET GLOBAL read_only = "+on)
				}
			}
			set("on")
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
			set("off")
			require.NoError(t, <-first)
			require.NoError(t, <-release)
			require.NoError(t, <-waiter)
			require.NoError(t, rival.Mutex("it").UnlockContext(b))
			require.NoError(t, c.Mutex("first").UnlockContext(b))
		})
	}
}

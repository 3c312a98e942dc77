package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// waits checks that a waiter goes on to wait while trouble lasts, and gets the lock when free has
// freed it. wait takes the lock and gives it back.
func waits(t *testing.T, began func() bool, wait func(ctx context.Context) error, trouble, free func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(adaptertest.Owner(), testbed.Hang)
	defer cancel()
	result := make(chan error, 1)
	var waiting atomic.Bool
	go func() {
		err := wait(ctx)
		// The first attempt may be too slow on a busy machine.
		for errors.Is(err, sqllock.ErrTimeout) && !waiting.Load() {
			err = wait(ctx)
		}
		result <- err
	}()
	soon(t, began)
	waiting.Store(true)
	trouble()
	select {
	case err := <-result:
		require.Fail(t, "waits no longer", "%v", err)
	default:
	}
	free()
	require.NoError(t, <-result)
}

// calm has only a hang end a request.
var calm = sqllock.WithRequestTimeout(testbed.Hang)

// lockAndUnlock is for waits.
func lockAndUnlock(l *lease.Mutex) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if err := l.LockContext(ctx); err != nil {
			return err
		}
		return l.UnlockContext(ctx)
	}
}

// refused returns a function that reports whether somebody waits for the lock called name whom
// the database has refused it.
func refused(c any, name string) func() bool {
	return func() bool { return len(c.(interface{ Told(name string) []int64 }).Told(name)) == 1 }
}

func TestWaitersOutlastAServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
		p := leasetest.NewProxy(t, where)
		holder := k.open(t, d.open(t, where), table).Mutex(name)
		c := k.open(t, d.open(t, p.Addr()), table)
		a := adaptertest.Owner()
		adaptertest.Hold(t, holder, a)
		waits(t, refused(c, name), lockAndUnlock(c.Mutex(name)), func() { trouble(t, p) },
			func() { require.NoError(t, holder.UnlockContext(a)) })
	})
	for _, d := range servers {
		t.Run("Row on "+d.name, func(t *testing.T) {
			t.Parallel()
			where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
			p := leasetest.NewProxy(t, where)
			end := work(t, openRow(t, d.open(t, where), table), adaptertest.Owner(), name)
			r := openRow(t, d.open(t, p.Addr()), table)
			wait := func(ctx context.Context) error { return r.Do(ctx, name, nothing) }
			waits(t, refused(r, name), wait, func() { trouble(t, p) }, end)
		})
	}
}

// trouble is a while of refused connections, and then a while without answers.
func trouble(t *testing.T, p *leasetest.Proxy) {
	p.Refuse()
	asked := p.Requests()
	soon(t, func() bool { return p.Requests() > asked+2 })
	p.Heal()
	asked = p.Requests()
	soon(t, func() bool { return p.Requests() > asked+4 })
	p.Cut()
	time.Sleep(1500 * time.Millisecond) // requests have no answer
	p.Heal()
	p.Reset()
}

func TestNobodyWaitsForAClosedPool(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
		holder := k.open(t, d.open(t, where), table).Mutex(name)
		db := d.open(t, where)
		// For this time, the test looks in vain for remains of the waiter.
		brief := sqllock.WithLeaseOptions(lease.WithReleaseTimeout(time.Second))
		c := k.open(t, db, table, brief)
		a := adaptertest.Owner()
		adaptertest.Hold(t, holder, a)
		result := make(chan error, 1)
		go func() { result <- c.Mutex(name).LockContext(adaptertest.Owner()) }()
		soon(t, refused(c, name))
		require.NoError(t, db.Close())
		require.ErrorContains(t, <-result, "closed")
		require.NoError(t, holder.UnlockContext(a))
	})
}

func TestWaitersOutlastAServerWithoutSpareConnections(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		where, table, name, user := d.serve(t), fresh(), fresh(), fresh()
		admin := d.open(t, where)
		exec := func(statements ...string) {
			for _, s := range statements {
				_, err := admin.Exec(s)
				require.NoError(t, err, s)
			}
		}
		var spare, none string
		if d.dialect == sqllock.Postgres {
			exec("CREATE ROLE "+user+" LOGIN SUPERUSER", "ALTER ROLE "+user+" NOSUPERUSER")
			spare, none = "ALTER ROLE "+user+" CONNECTION LIMIT -1", "ALTER ROLE "+user+" CONNECTION LIMIT 0"
		} else {
			exec("CREATE USER "+user+"@'%'", "GRANT ALL ON test.* TO "+user+"@'%'")
			limit := "ALTER USER " + user + "@'%' WITH MAX_USER_CONNECTIONS "
			spare, none = limit+"0", limit+"1"
		}
		holder := k.open(t, admin, sqllock.WithTable(table)).Mutex(name)
		if d.dialect == sqllock.Postgres && !k.ofSessions() {
			exec("GRANT ALL ON "+table+", "+table+"_queue, "+table+"_rows TO "+user,
				"GRANT ALL ON SEQUENCE "+table+"_queue_id_seq TO "+user)
		}
		db, err := sql.Open(d.driver, dsnOf(d.dialect, where, user))
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		c, _ := k.make(db, append(patient(), sqllock.WithTable(table))...) // which may not make the tables that are there
		t.Cleanup(func() { c.Close(background) })
		a := adaptertest.Owner()
		adaptertest.Hold(t, holder, a)
		db.SetMaxIdleConns(-1) // each request connects
		waits(t, refused(c, name), lockAndUnlock(c.Mutex(name)), func() {
			exec(none)
			if d.dialect == sqllock.MySQL { // which has to spare one at least
				var only *sql.Conn
				soon(t, func() bool { only, err = db.Conn(background); return err == nil })
				defer only.Close()
			}
			time.Sleep(500 * time.Millisecond) // the waiter asks several times
			exec(spare)
		}, func() { require.NoError(t, holder.UnlockContext(a)) })
	})
}

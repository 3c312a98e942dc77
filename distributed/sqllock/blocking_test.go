package sqllock_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// taker acquires the lock called "it", and returns what releases it.
type taker func(ctx context.Context) (free func() error, err error)

// blockers are the kinds whose waiters can wait in the server, with a lock that only one test has.
var blockers = []struct {
	name string
	on   []database
	open func(tb testing.TB, db *sql.DB, mark string, opts ...sqllock.Option) (take taker, end func())
}{
	{"Advisory", servers, func(tb testing.TB, db *sql.DB, mark string, opts ...sqllock.Option) (taker, func()) {
		p := advisory.open(tb, db, opts...)
		l := p.Mutex(mark)
		return func(ctx context.Context) (func() error, error) {
			return func() error { return l.UnlockContext(ctx) }, l.LockContext(ctx)
		}, func() { p.Close(background) }
	}},
	{"Row", []database{inPgx}, func(tb testing.TB, db *sql.DB, mark string, opts ...sqllock.Option) (taker, func()) {
		r := openRow(tb, db, append(opts, sqllock.WithTable(mark))...)
		return func(ctx context.Context) (func() error, error) {
			begun, ends := make(chan struct{}), make(chan struct{})
			done := inBackground(func() error {
				return r.Do(ctx, "it", func(*sql.Tx) error {
					close(begun)
					<-ends
					return nil
				})
			})
			select {
			case <-begun:
				return func() error { close(ends); return <-done }, nil
			case err := <-done:
				return nil, err
			}
		}, func() { r.Close(background) }
	}},
}

// blockade is a lock that a client holds, and for which other clients wait in the server.
type blockade struct {
	in     database
	counts *counted // in PostgreSQL
	db     *sql.DB  // of the waiters
	take   taker    // by a client whose waiters wait in the server
	end    func()   // of this client
	free   func() error
	admin  *sql.DB
	mark   string
}

// With rarely, waiters ask only when they are told.
var rarely = []sqllock.Option{
	sqllock.WithBackoff(time.Hour, time.Hour), sqllock.WithLeaseOptions(lease.WithPoll(time.Hour)),
}

// eachBlockade runs f for each kind of lock on each database.
func eachBlockade(t *testing.T, opts []sqllock.Option, f func(t *testing.T, b *blockade)) {
	t.Helper()
	blockadesOn(t, servers, opts, f)
}

// eachCountedBlockade runs f where the statements of the waiters are counted.
func eachCountedBlockade(t *testing.T, opts []sqllock.Option, f func(t *testing.T, b *blockade)) {
	t.Helper()
	blockadesOn(t, []database{inPgx}, opts, f)
}

func blockadesOn(t *testing.T, on []database, opts []sqllock.Option, f func(t *testing.T, b *blockade)) {
	t.Helper()
	for _, k := range blockers {
		for _, d := range k.on {
			if !slices.ContainsFunc(on, func(o database) bool { return o.name == d.name }) {
				continue
			}
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				where := d.serve(t)
				b := &blockade{in: d, counts: new(counted), admin: d.open(t, where), mark: fresh()}
				holder, _ := k.open(t, b.admin, b.mark)
				b.db = b.open(t, where)
				all := append(slices.Clip(opts), sqllock.WithBlockingWait(), term(time.Hour))
				b.take, b.end = k.open(t, b.db, b.mark, all...)
				free, err := b.take(adaptertest.Owner()) // the database is checked
				require.NoError(t, err)
				require.NoError(t, free())
				b.free, err = holder(adaptertest.Owner())
				require.NoError(t, err)
				b.counts.forget()
				f(t, b)
			})
		}
	}
}

// open returns a pool whose sessions the server shows under the mark: as the name of a program, or
// of a database of its own.
func (b *blockade) open(t *testing.T, where string) *sql.DB {
	if b.in.dialect == sqllock.Postgres {
		return b.counts.open(t, where, b.mark)
	}
	_, err := b.admin.Exec("CREATE DATABASE " + b.mark)
	require.NoError(t, err)
	config, err := mysql.ParseDSN(dsn(b.in.dialect, where))
	require.NoError(t, err)
	config.DBName = b.mark
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() {
		db.Close()
		_, err := b.admin.Exec("DROP DATABASE " + b.mark)
		require.NoError(t, err)
	})
	return db
}

// waits begins to acquire the lock, and returns what ends when it is released again.
func (b *blockade) waits(ctx context.Context) <-chan error {
	return inBackground(func() error {
		free, err := b.take(ctx)
		if err != nil {
			return err
		}
		return free()
	})
}

// blocked returns how many statements of the client wait in the server.
func (b *blockade) blocked() (n int) {
	n = -1
	query := `SELECT count(*) FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
		WHERE NOT l.granted AND a.application_name = $1`
	if b.in.dialect == sqllock.MySQL {
		query = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = ? AND STATE = 'User lock'"
	}
	b.admin.QueryRow(query, b.mark).Scan(&n)
	return n
}

// kill ends the sessions of the waiters.
func (b *blockade) kill(t *testing.T) {
	if b.in.dialect == sqllock.MySQL {
		kill(t, b.in, b.admin, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ?", b.mark)
		return
	}
	kill(t, b.in, b.admin, "SELECT pid FROM pg_stat_activity WHERE application_name = $1", b.mark)
}

// A late request begins to wait again for a caller that has gone.
func TestAPlaceThatNobodyAsksForEndsAfterItsLease(t *testing.T) {
	t.Parallel()
	where, mark := inPgx.serve(t), fresh()
	var store driver.Store
	waiting := advisory.open(t, inPgx.open(t, where), sqllock.WithBlockingWait(),
		sqllock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
			store = s
			return s
		})))
	l, a := advisory.open(t, inPgx.open(t, where)).Mutex(mark), adaptertest.Owner()
	require.NoError(t, l.LockContext(a))
	free := waiting.Mutex(fresh())
	require.NoError(t, free.LockContext(a)) // the database is checked
	require.NoError(t, free.UnlockContext(a))
	id := driver.HoldID{Name: mark, Acquisition: "client:1"}
	reply, err := store.(driver.Queue).Enqueue(background, driver.Request{HoldID: id, TTL: time.Second})
	require.NoError(t, err)
	require.False(t, reply.Held)
	require.NoError(t, l.UnlockContext(a))
	ctx, cancel := context.WithTimeout(a, testbed.Hang)
	defer cancel()
	require.NoError(t, l.LockContext(ctx))
	require.NoError(t, l.UnlockContext(a))
}

func TestABlockedWaiterNeedsNoStatementOnceReleased(t *testing.T) {
	t.Parallel()
	eachCountedBlockade(t, rarely, func(t *testing.T, b *blockade) {
		got := b.waits(adaptertest.Owner())
		soon(t, func() bool { return b.blocked() == 1 })
		asked := len(b.counts.statements())
		require.LessOrEqual(t, asked, 2) // that the lock is held, and the begin of a transaction
		require.NoError(t, b.free())
		require.NoError(t, <-got)
		require.Len(t, b.counts.statements(), asked+2) // what has waited, and the release
	})
}

func TestOnlyOneWaiterOfAProcessBlocks(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		var got []<-chan error
		for range 4 {
			got = append(got, b.waits(adaptertest.Owner()))
		}
		soon(t, func() bool { return b.blocked() == 1 })
		soon(t, func() bool { return b.db.Stats().InUse == 1 }, "the client may look after the waiter by another one")
		require.NoError(t, b.free())
		for _, c := range got {
			require.NoError(t, <-c)
		}
		unpinned(t, b.db)
	})
}

func TestACancelledBlockedWaiterLeavesNothing(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		ctx, cancel := context.WithCancel(adaptertest.Owner())
		defer cancel()
		got := b.waits(ctx)
		soon(t, func() bool { return b.blocked() == 1 })
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		soon(t, func() bool { return b.blocked() == 0 && b.db.Stats().InUse == 0 })
		require.NoError(t, b.free())
		require.NoError(t, <-b.waits(adaptertest.Owner()))
	})
}

func TestABlockedWaiterBeginsAnewAfterItsSession(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		got := b.waits(adaptertest.Owner())
		soon(t, func() bool { return b.blocked() == 1 })
		b.kill(t)
		soon(t, func() bool { return b.blocked() == 1 }, "it waits again")
		require.NoError(t, b.free())
		require.NoError(t, <-got)
	})
}

func TestCloseEndsABlockedWaiter(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		got := b.waits(adaptertest.Owner())
		soon(t, func() bool { return b.blocked() == 1 })
		b.end()
		require.ErrorIs(t, <-got, locks.ErrClosed)
		soon(t, func() bool { return b.blocked() == 0 && b.db.Stats().InUse == 0 })
		require.NoError(t, b.free())
	})
}

func TestASmallPoolsWaiterAsksInstead(t *testing.T) {
	t.Parallel()
	eachCountedBlockade(t, nil, func(t *testing.T, b *blockade) {
		b.db.SetMaxOpenConns(1)
		got := b.waits(adaptertest.Owner())
		soon(t, func() bool { return len(b.counts.statements()) > 20 })
		require.NoError(t, b.db.Ping(), "a connection is free in between")
		require.NoError(t, b.free())
		require.NoError(t, <-got)
	})
}

func TestABlockedWaiterWaitsLongerThanAStatement(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		got := b.waits(adaptertest.Owner())
		soon(t, func() bool { return b.blocked() == 1 })
		time.Sleep(3 * time.Second) // a statement on MySQL and MariaDB takes two seconds
		soon(t, func() bool { return b.blocked() == 1 }, "it waits on")
		require.NoError(t, b.free())
		require.NoError(t, <-got)
		unpinned(t, b.db)
	})
}

func TestABlockingWaitIsRefusedWhereThereIsNone(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inMaria, inSQLite} {
		db := d.open(t, d.serve(t))
		_, err := tableKind.make(db, sqllock.WithBlockingWait())
		require.ErrorIs(t, err, sqllock.ErrUnsupported)
		_, err = sqllock.NewRow(db, sqllock.WithBlockingWait())
		require.ErrorIs(t, err, sqllock.ErrUnsupported)
	}
	r := openRow(t, bounced(t, "", "exec"), sqllock.WithTable(fresh()), sqllock.WithBlockingWait())
	require.ErrorIs(t, r.Do(background, "it", nothing), sqllock.ErrUnsupportedTopology)
}

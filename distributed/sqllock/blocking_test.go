package sqllock_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

// taker acquires the lock called "it", and returns what releases it.
type taker func(ctx context.Context) (free func() error, err error)

// blockers are the kinds whose waiters can wait in the server, with a lock that only one test has.
var blockers = []struct {
	name string
	open func(tb testing.TB, db *sql.DB, mark string, opts ...sqllock.Option) (take taker, end func())
}{
	{"Advisory", func(tb testing.TB, db *sql.DB, mark string, opts ...sqllock.Option) (taker, func()) {
		p := advisory.open(tb, db, opts...)
		l := p.Mutex(mark)
		return func(ctx context.Context) (func() error, error) {
			return func() error { return l.UnlockContext(ctx) }, l.LockContext(ctx)
		}, func() { p.Close(background) }
	}},
	{"Row", func(tb testing.TB, db *sql.DB, mark string, opts ...sqllock.Option) (taker, func()) {
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

// blockade is a lock that one client holds, and for which others wait in the server.
type blockade struct {
	counts *counted
	db     *sql.DB // of the waiters
	take   taker   // by a client whose waiters wait in the server
	end    func()  // of this client
	free   func() error
	admin  *sql.DB
	mark   string
}

// rarely has waiters ask only when they are told.
var rarely = []sqllock.Option{
	sqllock.WithBackoff(time.Hour, time.Hour), sqllock.WithLeaseOptions(lease.WithPoll(time.Hour)),
}

// eachBlockade runs f for each kind of lock.
func eachBlockade(t *testing.T, opts []sqllock.Option, f func(t *testing.T, b *blockade)) {
	t.Helper()
	for _, k := range blockers {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			where := inPgx.serve(t)
			b := &blockade{counts: new(counted), admin: inPgx.open(t, where), mark: fresh()}
			holder, _ := k.open(t, b.admin, b.mark)
			b.db = b.counts.open(t, where, b.mark)
			all := append(slices.Clip(opts), sqllock.WithBlockingWait(), term(time.Hour))
			b.take, b.end = k.open(t, b.db, b.mark, all...)
			free, err := b.take(someone()) // the database is checked
			require.NoError(t, err)
			require.NoError(t, free())
			b.free, err = holder(someone())
			require.NoError(t, err)
			b.counts.forget()
			f(t, b)
		})
	}
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
	b.admin.QueryRow(`SELECT count(*) FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
		WHERE NOT l.granted AND a.application_name = $1`, b.mark).Scan(&n)
	return n
}

// A late request begins to wait again for a caller that has gone.
func TestAPlaceThatNobodyAsksForEndsAfterItsLease(t *testing.T) {
	t.Parallel()
	where, mark := inPgx.serve(t), fresh()
	var store lease.Store
	waiting := advisory.open(t, inPgx.open(t, where), sqllock.WithBlockingWait(),
		sqllock.WithLeaseOptions(lease.WithWrapper(func(s lease.Store) lease.Store {
			store = s
			return s
		})))
	l, a := advisory.open(t, inPgx.open(t, where)).Mutex(mark), someone()
	require.NoError(t, l.LockContext(a))
	free := waiting.Mutex(fresh())
	require.NoError(t, free.LockContext(a)) // the database is checked
	require.NoError(t, free.UnlockContext(a))
	id := lease.HoldID{Name: mark, Acquisition: "client:1"}
	reply, err := store.(lease.Queue).Enqueue(background, lease.Request{HoldID: id, TTL: time.Second})
	require.NoError(t, err)
	require.False(t, reply.Held)
	require.NoError(t, l.UnlockContext(a))
	ctx, cancel := context.WithTimeout(a, time.Minute)
	defer cancel()
	require.NoError(t, l.LockContext(ctx))
	require.NoError(t, l.UnlockContext(a))
}

func TestABlockedWaiterNeedsNoStatementOnceReleased(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		got := b.waits(someone())
		soon(t, func() bool { return b.blocked() == 1 })
		require.Len(t, b.counts.statements(), 2) // a session or a transaction, and that the lock is held
		require.NoError(t, b.free())
		require.NoError(t, <-got)
		require.Len(t, b.counts.statements(), 4) // what has waited, and the release
	})
}

func TestOnlyOneWaiterOfAProcessBlocks(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		var got []<-chan error
		for range 4 {
			got = append(got, b.waits(someone()))
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
		ctx, cancel := context.WithCancel(someone())
		defer cancel()
		got := b.waits(ctx)
		soon(t, func() bool { return b.blocked() == 1 })
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		soon(t, func() bool { return b.blocked() == 0 && b.db.Stats().InUse == 0 })
		require.NoError(t, b.free())
		require.NoError(t, <-b.waits(someone()))
	})
}

func TestABlockedWaiterBeginsAnewAfterItsSession(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		got := b.waits(someone())
		soon(t, func() bool { return b.blocked() == 1 })
		kill(t, inPgx, b.admin, "SELECT pid FROM pg_stat_activity WHERE application_name = $1", b.mark)
		soon(t, func() bool { return b.blocked() == 1 }, "it waits again")
		require.NoError(t, b.free())
		require.NoError(t, <-got)
	})
}

func TestCloseEndsABlockedWaiter(t *testing.T) {
	t.Parallel()
	eachBlockade(t, rarely, func(t *testing.T, b *blockade) {
		got := b.waits(someone())
		soon(t, func() bool { return b.blocked() == 1 })
		b.end()
		require.ErrorIs(t, <-got, locks.ErrClosed)
		soon(t, func() bool { return b.blocked() == 0 && b.db.Stats().InUse == 0 })
		require.NoError(t, b.free())
	})
}

func TestASmallPoolsWaiterAsksInstead(t *testing.T) {
	t.Parallel()
	eachBlockade(t, nil, func(t *testing.T, b *blockade) {
		b.db.SetMaxOpenConns(1)
		got := b.waits(someone())
		soon(t, func() bool { return len(b.counts.statements()) > 20 })
		require.NoError(t, b.db.Ping(), "a connection is free in between")
		require.NoError(t, b.free())
		require.NoError(t, <-got)
	})
}

func TestABlockingWaitNeedsPostgresAndItsSessions(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{tableKind, advisory} {
		db := inMaria.open(t, inMaria.serve(t))
		_, err := k.make(db, sqllock.WithBlockingWait())
		require.ErrorIs(t, err, sqllock.ErrUnsupported)
	}
	r := openRow(t, bounced(t, "", "exec"), sqllock.WithTable(fresh()), calm, sqllock.WithBlockingWait())
	require.ErrorIs(t, r.Do(background, "it", nothing), sqllock.ErrUnsupportedTopology)
}

package sqllock_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

var background = context.Background()

// provider has the methods that all kinds share.
type provider interface {
	locks.Provider
	Mutex(name string, opts ...lease.MutexOption) *lease.Mutex
	Close(ctx context.Context) error
}

// kind is a kind of lock.
type kind struct {
	name string
	make func(db *sql.DB, opts ...sqllock.Option) (provider, error)
	on   []database
	// lose takes the lock called "it" away from its holder. Nil where nobody can.
	lose func(tb testing.TB, d database, db *sql.DB, table string)
}

var (
	tableKind = kind{"Table", newTable, []database{inSQLite, inPgx, inPq, inMaria, inMySQL}, loseRow}
	queueKind = kind{"Table with a queue", newQueue, everywhere, loseRow}
	advisory  = kind{"Advisory", newAdvisory, []database{inPgx, inPq, inMaria, inMySQL}, loseSession}

	// permitKind has semaphores of one permit.
	permitKind = kind{"Semaphore", newPermits, []database{inSQLite, inPgx, inPq, inMaria, inMySQL}, nil}

	// blocking lets its waiters wait in the server.
	blocking = kind{"Advisory with a blocking wait", newBlocking, []database{inPgx, inPq, inMaria, inMySQL}, loseSession}

	kinds    = []kind{tableKind, queueKind, advisory}
	allKinds = append(slices.Clip(kinds), blocking)
)

// ofSessions says whether a lock of this kind ends with a connection.
func (k kind) ofSessions() bool { return k.name == advisory.name || k.name == blocking.name }

func newTable(db *sql.DB, opts ...sqllock.Option) (provider, error) {
	t, err := sqllock.NewTable(db, opts...)
	if err != nil {
		return nil, err
	}
	return t, t.CreateSchema(background)
}

// ofPermits has the semaphores of a Table as locks.
type ofPermits struct{ *sqllock.Table }

func (p ofPermits) Mutex(name string, _ ...lease.MutexOption) *lease.Mutex {
	return p.Semaphore(name, 1).Locker(1)
}

func newPermits(db *sql.DB, opts ...sqllock.Option) (provider, error) {
	t, err := sqllock.NewTable(db, opts...)
	if err != nil {
		return nil, err
	}
	return ofPermits{t}, t.CreateSchema(background)
}

func newQueue(db *sql.DB, opts ...sqllock.Option) (provider, error) {
	return newTable(db, append([]sqllock.Option{sqllock.WithQueue(0)}, opts...)...)
}

func newAdvisory(db *sql.DB, opts ...sqllock.Option) (provider, error) {
	return sqllock.NewAdvisory(db, opts...)
}

func newBlocking(db *sql.DB, opts ...sqllock.Option) (provider, error) {
	return newAdvisory(db, append([]sqllock.Option{sqllock.WithBlockingWait()}, opts...)...)
}

// open returns a patient provider in db that is closed with the test, unless opts say otherwise.
func (k kind) open(tb testing.TB, db *sql.DB, opts ...sqllock.Option) provider {
	tb.Helper()
	p, err := k.make(db, append(patient(), opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// patient returns options with limits that only a hang reaches.
func patient() []sqllock.Option {
	return []sqllock.Option{calm, sqllock.WithLeaseOptions(adaptertest.Patient)}
}

// openRow is open of a Row.
func openRow(tb testing.TB, db *sql.DB, opts ...sqllock.Option) *sqllock.Row {
	tb.Helper()
	r, err := sqllock.NewRow(db, append(patient(), opts...)...)
	require.NoError(tb, err)
	require.NoError(tb, r.CreateSchema(background))
	tb.Cleanup(func() { r.Close(background) })
	return r
}

// nothing is the work of a test that needs none.
func nothing(*sql.Tx) error { return nil }

// work begins work with the lock called name, and returns what ends it.
func work(tb testing.TB, r *sqllock.Row, ctx context.Context, name string) (end func()) {
	tb.Helper()
	begun, ended := make(chan struct{}), make(chan struct{})
	done := inBackground(func() error {
		return r.Do(ctx, name, func(*sql.Tx) error {
			close(begun)
			<-ended
			return nil
		})
	})
	select {
	case <-begun:
	case err := <-done:
		require.NoError(tb, err)
	}
	return func() {
		close(ended)
		require.NoError(tb, <-done)
	}
}

// worked reports whether a client works with the lock called name.
func worked(tb testing.TB, r *sqllock.Row, name string) bool {
	tb.Helper()
	ctx, cancel := context.WithTimeout(adaptertest.Owner(), 300*time.Millisecond)
	defer cancel()
	err := r.Do(ctx, name, nothing)
	if err != nil {
		require.ErrorIs(tb, err, context.DeadlineExceeded)
	}
	return err != nil
}

// soon waits until cond is true.
func soon(tb testing.TB, cond func() bool, message ...any) {
	tb.Helper()
	require.Eventually(tb, cond, testbed.Hang, 5*time.Millisecond, message...)
}

// unpinned waits until no connection of a pool is in use. A driver may take its time to close one,
// which is after the call that used it.
func unpinned(tb testing.TB, pool *sql.DB) {
	tb.Helper()
	soon(tb, func() bool { return pool.Stats().InUse == 0 }, "pinned")
}

func term(d time.Duration) sqllock.Option { return sqllock.WithTTL(d) }

func loseRow(tb testing.TB, d database, db *sql.DB, table string) {
	_, err := db.Exec("UPDATE " + table + " SET owner = NULL WHERE name = 'it'")
	require.NoError(tb, err)
}

// kill ends the sessions whose ids a query returns.
func kill(tb testing.TB, d database, db *sql.DB, query string, args ...any) {
	tb.Helper()
	rows, err := db.Query(query, args...)
	require.NoError(tb, err)
	var ids []int64
	for rows.Next() {
		var id int64
		require.NoError(tb, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(tb, rows.Close())
	require.NotEmpty(tb, ids, "nobody to kill")
	for _, id := range ids {
		if d.dialect == sqllock.Postgres {
			_, err = db.Exec("SELECT pg_terminate_backend($1::int)", id)
		} else {
			_, err = db.Exec(fmt.Sprintf("KILL %d", id))
		}
		require.NoError(tb, err)
	}
}

func loseSession(tb testing.TB, d database, db *sql.DB, table string) { loseSessionOf(tb, d, db, "it") }

func loseSessionOf(tb testing.TB, d database, db *sql.DB, name string) {
	tb.Helper()
	if d.dialect == sqllock.Postgres {
		sum := sha256.Sum256([]byte("sqllock:" + name))
		key := binary.BigEndian.Uint64(sum[:8])
		kill(tb, d, db, `SELECT pid FROM pg_locks
			WHERE locktype = 'advisory' AND classid::bigint = $1 AND objid::bigint = $2`,
			int64(key>>32), int64(uint32(key)))
	} else {
		kill(tb, d, db, "SELECT IS_USED_LOCK(?)", name)
	}
}

func TestLocksConform(t *testing.T) {
	for _, k := range allKinds {
		for _, d := range k.on {
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				pools := make(map[locks.TryLocker]*sql.DB)
				where, table := d.serve(t), fresh()
				lose := func(l locks.TryLocker) { k.lose(t, d, pools[l], table) }
				if k.lose == nil {
					lose = nil
				}
				lockstest.TestTryLocker(t, lockstest.Config{
					New: func(tb testing.TB) locks.TryLocker {
						db := d.open(tb, where)
						l := k.open(tb, db, term(testbed.ConformanceLease(tb)), sqllock.WithTable(table)).Mutex("it")
						pools[l] = db
						return l
					},
					Owned:       true,
					Reentrant:   true,
					Leased:      true,
					SpuriousTry: true, // while another attempt fails
					FIFO:        true,
					Lose:        lose,
					Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
					Rounds:      12,
					Settle:      5 * time.Millisecond,
					Timeout:     testbed.Hang,
				})
			})
		}
	}
}

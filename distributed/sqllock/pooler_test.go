package sqllock_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
	"github.com/jucgo/locks/internal/testkit/testbed"
)

// pooling are the ways in which a pooler may give sessions out, and the modes of the driver.
var pooling = []struct{ name, setting, mode string }{
	{"last used first", "", "exec"},
	{"in turn", "server_round_robin = 1", "exec"},
	{"a single session", "default_pool_size = 1", "exec"},
	{"prepared statements", "", "cache_statement"},
}

// bounced returns a pool of connections to a pooler in front of the shared PostgreSQL server.
func bounced(t *testing.T, setting, mode string) *sql.DB {
	t.Helper()
	ready := answers("pgx", sqllock.Postgres)
	addr := testbed.StartPgbouncer(t, inPgx.serve(t), func(addr string) error { return ready(addr) }, setting).Addr()
	db, err := sql.Open("pgx", dsn(sqllock.Postgres, addr)+"&default_query_exec_mode="+mode)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSessionLocksBehindATransactionPoolerAreRefused(t *testing.T) {
	t.Parallel()
	for _, p := range pooling {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			db := bounced(t, p.setting, p.mode)
			l := advisory.open(t, db, calm).Mutex(fresh())
			for range 3 { // the verdict is not a matter of luck
				require.ErrorIs(t, l.LockContext(background), sqllock.ErrUnsupportedTopology)
				_, err := l.TryLockContext(background)
				require.ErrorIs(t, err, sqllock.ErrUnsupportedTopology)
			}
			require.Zero(t, db.Stats().InUse)
		})
	}
}

func TestListeningBehindATransactionPoolerIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{tableKind, queueKind, rowKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db, table := bounced(t, "", "exec"), sqllock.WithTable(fresh())
			c := k.open(t, db, table, calm, sqllock.WithListener(pgxnotify.Listener(db)))
			require.ErrorIs(t, c.Mutex("it").LockContext(background), sqllock.ErrUnsupportedTopology)
			if r, ok := c.(*sqllock.Row); ok {
				err := r.Do(background, "it", func(*sql.Tx) error { return nil })
				require.ErrorIs(t, err, sqllock.ErrUnsupportedTopology)
			}
			without := k.open(t, db, table, calm).Mutex("it")
			require.False(t, held(t, without), "without a listener it works")
		})
	}
}

func TestAPoolOfOneConnectionIsNotProbed(t *testing.T) {
	t.Parallel()
	db := inPgx.open(t, inPgx.serve(t))
	db.SetMaxOpenConns(1)
	l, a := advisory.open(t, db, sqllock.WithRequestTimeout(30*time.Second)).Mutex(fresh()), someone()
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

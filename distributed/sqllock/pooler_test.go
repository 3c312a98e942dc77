package sqllock_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
	"github.com/jucgo/locks/internal/test/testbed"
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
			l := advisory.open(t, db).Mutex(fresh())
			for range 3 { // the verdict is not a matter of luck
				require.ErrorIs(t, l.LockContext(background), sqllock.ErrUnsupportedTopology)
				_, err := l.TryLockContext(background)
				require.ErrorIs(t, err, sqllock.ErrUnsupportedTopology)
			}
			unpinned(t, db)
		})
	}
}

func TestListeningBehindATransactionPoolerIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range inTables {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db, table := bounced(t, "", "exec"), sqllock.WithTable(fresh())
			c := k.open(t, db, table, sqllock.WithListener(pgxnotify.Listener(db)))
			require.ErrorIs(t, c.Mutex("it").LockContext(background), sqllock.ErrUnsupportedTopology)
			without := k.open(t, db, table).Mutex("it")
			require.False(t, held(t, without), "without a listener it works")
		})
	}
	t.Run("Row", func(t *testing.T) {
		t.Parallel()
		db, table := bounced(t, "", "exec"), sqllock.WithTable(fresh())
		r := openRow(t, db, table, sqllock.WithListener(pgxnotify.Listener(db)))
		require.ErrorIs(t, r.Do(background, "it", nothing), sqllock.ErrUnsupportedTopology)
		require.NoError(t, openRow(t, db, table).Do(background, "it", nothing))
	})
}

func TestAPoolerIsFoundBesideOtherTraffic(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		name, setting, work string
		loops               int
	}{
		{"last used first", "", "SELECT 1", 2},
		{"in turn", "server_round_robin = 1", "SELECT 1", 2},
		{"three sessions", "default_pool_size = 3", "SELECT pg_sleep(0.002)", 6},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			db := bounced(t, p.setting, "exec")
			ctx, stop := context.WithCancel(background)
			var traffic sync.WaitGroup
			defer traffic.Wait()
			defer stop()
			for range p.loops {
				traffic.Go(func() {
					for ctx.Err() == nil {
						tx, err := db.BeginTx(background, nil)
						if !assert.NoError(t, err) {
							return
						}
						_, err = tx.Exec(p.work)
						assert.NoError(t, err)
						assert.NoError(t, tx.Commit())
					}
				})
			}
			for range 100 { // clients, of which each probes for itself
				l := advisory.open(t, db).Mutex(fresh())
				require.ErrorIs(t, l.LockContext(background), sqllock.ErrUnsupportedTopology)
			}
		})
	}
}

func TestNoRequestOfTheClientMeetsItsProbe(t *testing.T) {
	t.Parallel()
	where := inPgx.serve(t)
	var mu sync.Mutex
	var sent []string
	db := sql.OpenDB(observer{inPgx.open(t, where).Driver(), dsn(sqllock.Postgres, where), func(query string) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, query)
	}})
	t.Cleanup(func() { db.Close() })
	// indexesOf returns the indexes of the statements with text.
	indexesOf := func(text string) (indexes []int) {
		mu.Lock()
		defer mu.Unlock()
		for i, query := range sent {
			if strings.Contains(query, text) {
				indexes = append(indexes, i)
			}
		}
		return indexes
	}
	silent := func(ctx context.Context, _ string, _ func(), _ func(string)) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for range 10 {
		table := fresh()
		l := tableKind.open(t, db, sqllock.WithTable(table), sqllock.WithListener(silent)).Mutex("it")
		mu.Lock()
		sent = nil
		mu.Unlock()
		a := adaptertest.Owner()
		adaptertest.Hold(t, l, a)
		soon(t, func() bool { return len(indexesOf(table+"_clients")) > 0 }, "it has announced itself")
		require.NoError(t, l.UnlockContext(a))
		probes := indexesOf("pg_backend_pid")
		require.NotEmpty(t, probes)
		require.Greater(t, indexesOf(table)[0], probes[len(probes)-1])
	}
}

func TestAPoolOfOneConnectionIsNotProbed(t *testing.T) {
	t.Parallel()
	db := inPgx.open(t, inPgx.serve(t))
	db.SetMaxOpenConns(1)
	l, a := advisory.open(t, db, sqllock.WithRequestTimeout(30*time.Second)).Mutex(fresh()), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

package open_test

import (
	"database/sql"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// startPgbouncer returns the URL of a pooler that gives each transaction a free session.
func startPgbouncer(tb testing.TB) string {
	tb.Helper()
	ready := func(addr string) error {
		db, err := sql.Open("pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable&default_query_exec_mode=exec")
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	}
	server := testbed.StartPostgres(tb, ready)
	pooler := testbed.StartPgbouncer(tb, server.Addr(), ready, "default_pool_size = 3", "server_round_robin = 1")
	return "postgres://postgres@" + pooler.Addr() + "/postgres?sslmode=disable"
}

func TestAURLWithoutNotificationsWorksBehindATransactionPooler(t *testing.T) {
	url := startPgbouncer(t)
	for _, parameters := range []string{
		"&listen=false",
		"&listen=false&default_query_exec_mode=simple_protocol",
		"&listen=false&kind=queue",
	} {
		inside := 0
		var wg sync.WaitGroup
		for range 4 {
			store := opened(t, url+parameters)
			wg.Go(func() {
				for range 20 {
					l, ctx := store.Locker("it"), locks.WithOwner(t.Context(), locks.NewOwner())
					if !assert.NoError(t, l.LockContext(ctx)) {
						return
					}
					inside++
					assert.Equal(t, 1, inside)
					inside--
					assert.NoError(t, l.UnlockContext(ctx))
				}
			})
		}
		wg.Wait()
	}
}

func TestATransactionPoolerIsRefusedWithTheRemedy(t *testing.T) {
	url := startPgbouncer(t)
	for _, parameters := range []string{
		"", "&default_query_exec_mode=exec", "&kind=queue", "&kind=advisory", "&kind=advisory&listen=false",
	} {
		err := opened(t, url+parameters).Locker("it").LockContext(t.Context())
		require.ErrorIs(t, err, sqllock.ErrUnsupportedTopology, parameters)
		require.ErrorContains(t, err, "listen=false", parameters)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestAnUnknownModeOfStatementsIsRefused(t *testing.T) {
	_, err := open.URL(t.Context(), "postgres://localhost/db?default_query_exec_mode=fancy")
	require.ErrorIs(t, err, open.ErrURL)
	require.ErrorContains(t, err, "default_query_exec_mode")
}

package all_test

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
func startPgbouncer(tb testing.TB, settings ...string) string {
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
	settings = append(settings, "default_pool_size = 3", "server_round_robin = 1")
	pooler := testbed.StartPgbouncer(tb, server.Addr(), ready, settings...)
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

// The ways to write a search path in a URL.
var searchPaths = []string{
	"&search_path=app", "&options=-c%20search_path%3Dapp", "&options=-csearch_path%3Dapp", "&options=--search_path%3Dapp",
}

func TestAPoolerThatRefusesASearchPathLeadsToTheRemedy(t *testing.T) {
	url := startPgbouncer(t)
	for _, parameters := range searchPaths {
		_, err := open.URL(t.Context(), url+"&listen=false"+parameters)
		require.ErrorContains(t, err, "unsupported startup parameter", parameters)
		require.ErrorContains(t, err, "table=SCHEMA.TABLE", parameters)
		require.NotErrorIs(t, err, open.ErrUnreachable, parameters)
	}
}

func TestAPoolerThatIgnoresASearchPathIsRefused(t *testing.T) {
	url := startPgbouncer(t, "ignore_startup_parameters = extra_float_digits, search_path, options")
	for _, parameters := range searchPaths {
		_, err := open.URL(t.Context(), url+"&listen=false"+parameters)
		require.ErrorIs(t, err, sqllock.ErrUnsupportedTopology, parameters)
		require.ErrorContains(t, err, "table=SCHEMA.TABLE", parameters)
	}
	for _, parameters := range []string{"", "&table=public.named", "&search_path=app&table=public.named"} {
		l := opened(t, url+"&listen=false"+parameters).Locker("it")
		require.NoError(t, l.LockContext(t.Context()), parameters)
		require.NoError(t, l.UnlockContext(t.Context()), parameters)
	}
}

func TestASearchPathOfTheURLChoosesTheTable(t *testing.T) {
	ready := func(addr string) error {
		db, err := sql.Open("pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable")
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec(`CREATE SCHEMA IF NOT EXISTS app`)
		return err
	}
	url := "postgres://postgres@" + testbed.StartPostgres(t, ready).Addr() + "/postgres?sslmode=disable"
	holder := opened(t, url+"&table=app.sql_locks").Locker("it")
	require.NoError(t, holder.LockContext(t.Context()))
	for _, parameters := range searchPaths {
		ctx := locks.WithOwner(t.Context(), locks.NewOwner())
		ok, err := opened(t, url+parameters).Locker("it").TryLockContext(ctx)
		require.NoError(t, err, parameters)
		require.False(t, ok, parameters)
	}
	store := opened(t, url+"&search_path=app,%20public&application_name=the%20shop+%2B")
	require.NoError(t, store.Locker("other").LockContext(t.Context()))
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	defer db.Close()
	var named int
	row := db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'the shop +'`)
	require.NoError(t, row.Scan(&named))
	require.NotZero(t, named, "a space of a parameter is not a space for the server")
}

func TestAnUnknownModeOfStatementsIsRefused(t *testing.T) {
	_, err := open.URL(t.Context(), "postgres://localhost/db?default_query_exec_mode=fancy")
	require.ErrorIs(t, err, open.ErrURL)
	require.ErrorContains(t, err, "default_query_exec_mode")
}

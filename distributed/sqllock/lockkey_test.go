package sqllock_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/sqllock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	db, err := sql.Open("pgx", "postgres://user:geheim@127.0.0.1:1/shop")
	require.NoError(t, err)
	defer db.Close()
	var keys []string
	for range 2 { // each client has an id of its own
		table, err := sqllock.NewTable(db, sqllock.WithTable("one"))
		require.NoError(t, err)
		keys = append(keys, table.Mutex("it").LockKey())
		require.NoError(t, table.Close(t.Context()))
	}
	require.Equal(t, keys[0], keys[1])
	require.True(t, strings.HasPrefix(keys[0], "it\x00"), "%q", keys[0])
	require.NotContains(t, keys[0], "geheim")

	other, err := sqllock.NewTable(db, sqllock.WithTable("two"))
	require.NoError(t, err)
	defer other.Close(t.Context())
	require.NotEqual(t, keys[0], other.Mutex("it").LockKey())
}

// Two programs may have two names for one key, so their names do not give an order.
func TestALockWithAKeyOfTheUserHasNoOrder(t *testing.T) {
	db, err := sql.Open("pgx", "postgres://127.0.0.1:1/shop")
	require.NoError(t, err)
	defer db.Close()
	a, err := sqllock.NewAdvisory(db, sqllock.WithKey(func(string) int64 { return 7 }))
	require.NoError(t, err)
	defer a.Close(t.Context())
	require.True(t, strings.HasPrefix(a.Mutex("it").LockKey(), "\x00it\x00"))
}

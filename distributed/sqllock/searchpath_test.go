package sqllock_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/sqllock"
)

// See WithTable.
func TestASchemaJoinsRolesWithDifferentSearchPaths(t *testing.T) {
	t.Parallel()
	d := inPgx
	where, table := d.serve(t), fresh()
	admin := d.open(t, where)
	var dbs []*sql.DB
	for range 2 {
		role := fresh()
		for _, s := range []string{
			"CREATE ROLE " + role + " LOGIN SUPERUSER", "CREATE SCHEMA " + role,
			"ALTER ROLE " + role + " SET search_path = " + role + ", public",
		} {
			_, err := admin.Exec(s)
			require.NoError(t, err, s)
		}
		db, err := sql.Open(d.driver, dsnOf(d.dialect, where, role))
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		dbs = append(dbs, db)
	}
	for name, both := range map[string]bool{table: true, "public." + table: false} {
		a, b := adaptertest.Owner(), adaptertest.Owner()
		first := tableKind.open(t, dbs[0], sqllock.WithTable(name)).Mutex("it")
		second := tableKind.open(t, dbs[1], sqllock.WithTable(name)).Mutex("it")
		adaptertest.Hold(t, first, a)
		ok, err := second.TryLockContext(b)
		require.NoError(t, err)
		require.Equal(t, both, ok, "%s: both roles hold the lock", name)
		if ok {
			require.NoError(t, second.UnlockContext(b))
		}
		require.NoError(t, first.UnlockContext(a))
	}
}

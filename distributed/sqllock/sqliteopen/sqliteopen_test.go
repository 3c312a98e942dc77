package sqliteopen_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/open"
	_ "github.com/jucgo/locks/distributed/sqllock/sqliteopen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// SQLite waits for a second, and not at all if the journal changes.
func TestABusyFileIsWaitedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	user, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = user.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
	require.NoError(t, err)
	opened := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := open.URL(ctx, "sqlite:"+file)
		if err == nil {
			err = c.Close(ctx)
		}
		opened <- err
	}()
	time.Sleep(1500 * time.Millisecond)
	require.Empty(t, opened)
	_, err = user.ExecContext(t.Context(), "COMMIT")
	require.NoError(t, err)
	require.NoError(t, <-opened)
	require.NoError(t, user.Close())
	require.NoError(t, db.Close())
}

func TestABusyFileEndsWithTheContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	user, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = user.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = open.URL(ctx, "sqlite:"+file)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, user.Close())
	require.NoError(t, db.Close())
}

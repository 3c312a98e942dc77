package sqllock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// contended is a database whose first statement meets a conflict. The next statements get no
// answer.
type contended struct{ asked atomic.Int64 }

func (c *contended) Connect(context.Context) (driver.Conn, error) { return silent{db: c}, nil }
func (c *contended) Driver() driver.Driver                        { return nil }

// silent is a connection. It has all methods of a driver that are used.
type silent struct {
	driver.Conn
	db *contended
}

type conflict struct{}

func (conflict) Error() string    { return "conflict" }
func (conflict) SQLState() string { return "40001" }

func (s silent) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	if s.db.asked.Add(1) == 1 {
		return nil, conflict{}
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Close() error { return nil }

// TestTablesThatTakeTooLongAreNoEndOfTheCallersContext has a server that answers no statement.
func TestTablesThatTakeTooLongAreNoEndOfTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := &contended{}
		asked.asked.Store(1)
		db := sql.OpenDB(asked)
		defer db.Close()
		c, err := newCore(db, []Option{WithDialect(Postgres)})
		require.NoError(t, err)
		err = c.createSchema(t.Context())
		require.ErrorContains(t, err, "sqllock: create tables of ")
		require.ErrorContains(t, err, "no answer in time")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestARepeatedStatementEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for range 30 {
		db := sql.OpenDB(&contended{})
		c := &core{db: db}
		c.dialect, c.timeout = Postgres, time.Minute
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		done := make(chan error, 1)
		go func() {
			_, err := c.execSlowly(ctx, &statement{text: "UPDATE"})
			done <- err
		}()
		select {
		case err := <-done:
			require.ErrorIs(t, err, context.DeadlineExceeded)
		case <-time.After(testbed.Hang):
			t.Fatal("it goes on when its context has ended")
		}
		cancel()
		require.NoError(t, db.Close())
	}
}

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

	leasedriver "github.com/jucgo/locks/distributed/lease/driver"
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
			_, _, err := c.execSlowly(ctx, &statement{text: "UPDATE"})
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

// inTurn is a database that answers its statements in order. A statement without an answer in
// the list gets one when its context ends.
type inTurn struct {
	driver.Conn
	asked   atomic.Int64
	answers []func() error
}

func (a *inTurn) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (a *inTurn) Driver() driver.Driver                        { return nil }
func (a *inTurn) Close() error                                 { return nil }

func (a *inTurn) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	answer := a.answers[a.asked.Add(1)-1]
	if answer == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return driver.RowsAffected(1), answer()
}

// TestARenewalTellsOfARequestWithoutAnAnswer is about statements that may be carried out late,
// beside a statement that was answered.
func TestARenewalTellsOfARequestWithoutAnAnswer(t *testing.T) {
	ok := func() error { return nil }
	busy := func() error { return conflict{} }
	slow := func() error {
		time.Sleep(DefaultRequestTimeout * 3 / 2)
		return nil
	}
	for name, test := range map[string]struct {
		answers []func() error
		want    error
	}{
		"one request":                       {[]func() error{ok}, nil},
		"a conflict":                        {[]func() error{busy, ok}, nil},
		"conflicts":                         {[]func() error{busy, busy, busy, ok}, nil},
		"no answer to the first":            {[]func() error{nil, ok}, leasedriver.ErrUnanswered},
		"no answer to the first two":        {[]func() error{nil, nil, ok}, leasedriver.ErrUnanswered},
		"an answer while another one waits": {[]func() error{slow, nil}, leasedriver.ErrUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := sql.OpenDB(&inTurn{answers: test.answers})
				defer db.Close()
				c, err := newCore(db, []Option{WithDialect(Postgres)})
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				held, err := newTableStore(c).Renew(ctx, []leasedriver.HoldID{{Name: "it", Acquisition: "mine"}}, time.Minute)
				require.Equal(t, []bool{true}, held)
				require.Equal(t, test.want, err)
				require.NoError(t, db.Close())
				synctest.Wait()
			})
		})
	}
}

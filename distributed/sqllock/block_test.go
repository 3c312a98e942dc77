package sqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// answering is a database. Each statement returns a number in all of its columns: the next of some
// numbers, and then 0.
type answering struct {
	sqldriver.Conn
	columns []string
	numbers chan int64
}

func (a answering) Connect(context.Context) (sqldriver.Conn, error) { return a, nil }
func (answering) Driver() sqldriver.Driver                          { return nil }
func (answering) Close() error                                      { return nil }

func (a answering) QueryContext(context.Context, string, []sqldriver.NamedValue) (sqldriver.Rows, error) {
	r := &oneRow{columns: a.columns}
	select {
	case r.n = <-a.numbers:
	default:
	}
	return r, nil
}

type oneRow struct {
	columns []string
	n       int64
	read    bool
}

func (r *oneRow) Columns() []string { return r.columns }
func (*oneRow) Close() error        { return nil }

func (r *oneRow) Next(dest []sqldriver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	for i := range dest {
		dest[i] = r.n
	}
	return nil
}

func TestAStatementThatWaitsUnansweredIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := answering{columns: []string{"waiting"}, numbers: make(chan int64, 5)}
		for _, n := range []int64{1, 0, 1, 2} { // the second time the answer may be on its way
			waits.numbers <- n
		}
		db := sql.OpenDB(waits)
		c, err := newCore(db, []Option{WithDialect(Postgres)})
		require.NoError(t, err)
		began, lost := time.Now(), make(chan time.Duration, 1)
		stop := c.lookAfter(7, func() { lost <- time.Since(began) })
		require.Equal(t, 6*quiet, <-lost)
		stop()
		stop = c.lookAfter(7, func() { t.Error("it was stopped") })
		stop()
		require.NoError(t, c.close(context.Background(), nil))
		require.NoError(t, db.Close())
	})
}

func TestAHoldWhoseAnswerCameLateIsFound(t *testing.T) {
	for _, has := range []bool{true, false} {
		session := answering{columns: []string{"session", "holder"}, numbers: make(chan int64, 1)}
		db := sql.OpenDB(session)
		c, err := newCore(db, []Option{WithDialect(Postgres)})
		require.NoError(t, err)
		s := blockingStore{newSessionStore(c)}
		s.NotifyLoss(func(driver.HoldID, error) {})
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		req := driver.Request{HoldID: driver.HoldID{Name: "it", Acquisition: "me"}, TTL: time.Minute}
		s.blocked[req.HoldID] = &blocked{
			end: func() {}, sent: driver.Now(), over: true, sess: newSession(req.HoldID, conn, 7),
			unclaimed: time.NewTimer(time.Hour),
		}
		reply, err := s.Enqueue(t.Context(), req)
		require.NoError(t, err)
		require.True(t, reply.Held)
		session.numbers <- map[bool]int64{true: 7, false: 8}[has] // the session that has the lock
		reply, err = s.Enqueue(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, has, reply.Held)
		s.close(t.Context())
		require.Zero(t, db.Stats().InUse)
		require.NoError(t, db.Close())
	}
}

func TestALongBlockedWaitsSessionIsAskedAgain(t *testing.T) {
	for _, x := range []struct {
		name    string
		waited  time.Duration
		answer  int64
		held    bool
		counted bool // from the statement that has waited
	}{
		{"after a short wait", 10 * time.Second, 0, true, true},
		{"has the lock", 30 * time.Second, 7, true, false},
		{"has lost the lock", 30 * time.Second, 8, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			session := answering{columns: []string{"session", "holder"}, numbers: make(chan int64, 1)}
			session.numbers <- x.answer
			db := sql.OpenDB(session)
			c, err := newCore(db, []Option{WithDialect(Postgres)})
			require.NoError(t, err)
			s := blockingStore{newSessionStore(c)}
			s.NotifyLoss(func(driver.HoldID, error) {})
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			req := driver.Request{HoldID: driver.HoldID{Name: "it", Acquisition: "me"}, TTL: time.Minute}
			sent := driver.Now().Add(-x.waited)
			s.blocked[req.HoldID] = &blocked{
				end: func() {}, sent: sent, over: true, sess: newSession(req.HoldID, conn, 7),
				unclaimed: time.NewTimer(time.Hour),
			}
			reply, err := s.Enqueue(t.Context(), req)
			require.Equal(t, x.held, reply.Held)
			require.Equal(t, x.held, err == nil)
			require.Equal(t, x.counted, reply.Since.Equal(sent))
			s.close(t.Context())
			require.Zero(t, db.Stats().InUse)
			require.NoError(t, db.Close())
		})
	}
}

package sqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/test/testbed"
)

// stuck is a database whose connections close only when gate is closed.
type stuck struct{ gate chan struct{} }

func (s stuck) Connect(context.Context) (sqldriver.Conn, error) { return stuckConn{gate: s.gate}, nil }
func (stuck) Driver() sqldriver.Driver                          { return nil }

type stuckConn struct {
	sqldriver.Conn
	gate chan struct{}
}

func (c stuckConn) Close() error {
	<-c.gate
	return nil
}

func TestCloseWaitsForNoConnectionAfterItsContext(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	db := sql.OpenDB(stuck{gate})
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	s := newSessionStore(nil)
	s.NotifyLoss(func(driver.HoldID, error) {})
	sess := newSession(driver.HoldID{}, conn, 0)
	sess.over, sess.end = time.NewTimer(time.Minute), func() {}
	s.held[sess.ref] = sess
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.close(ctx)
	}()
	select {
	case <-done:
	case <-time.After(testbed.Hang):
		t.Error("it waits for a connection when its context has ended")
	}
	close(gate)
	s.close(t.Context()) // the connection has closed
	require.NoError(t, db.Close())
}

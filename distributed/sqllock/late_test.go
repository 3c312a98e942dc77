package sqllock_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/sqllock"
)

// slowLane is between a client and a server. It keeps back the next data that a client sends, until
// it may go on, and passes the data on even if the client has given up.
type slowLane struct {
	net.Listener
	server  string
	keeps   atomic.Bool
	kept    chan struct{} // closed when data was kept back
	goes    chan struct{} // closed when that data may go on
	through chan struct{} // closed when the server has that data
}

func newSlowLane(t *testing.T, server string) *slowLane {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &slowLane{l, server, atomic.Bool{}, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(client)
		}
	}()
	return s
}

func (s *slowLane) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", s.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	for b := make([]byte, 1<<16); ; {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		late := s.keeps.CompareAndSwap(true, false)
		if late {
			close(s.kept)
			<-s.goes
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
		if late {
			close(s.through)
		}
	}
}

func TestARenewalThatComesLateShortensNoExtensionUnseen(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Minute // no renewal comes by itself
	table, where := fresh(), inPgx.serve(t)
	lane := newSlowLane(t, where)
	watching, db := inPgx.open(t, where), inPgx.open(t, lane.Addr().String())
	db.SetMaxIdleConns(1)
	l := tableKind.open(t, db, term(ttl), sqllock.WithTable(table), swift).Mutex("it")
	a := adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	soon(t, func() bool { s := db.Stats(); return s.InUse == 0 && s.OpenConnections == 1 })
	require.NoError(t, h.Extend(a, ttl), "the connection has the statement prepared from now on")
	lane.keeps.Store(true)
	require.NoError(t, h.Extend(a, ttl), "another connection answers")
	<-lane.kept
	require.NoError(t, h.Extend(a, time.Hour))
	left := func() time.Duration {
		var micros int64
		err := watching.QueryRow(`SELECT CAST(extract(epoch FROM ends - clock_timestamp()) * 1000000 AS bigint) FROM ` + table).
			Scan(&micros)
		require.NoError(t, err)
		return time.Duration(micros) * time.Microsecond
	}
	require.Greater(t, left(), ttl)
	close(lane.goes)
	<-lane.through
	soon(t, func() bool { return left() <= ttl })
	deadline, _ := h.Deadline()
	require.Less(t, time.Until(deadline), left())
	require.NoError(t, l.UnlockContext(a))
}

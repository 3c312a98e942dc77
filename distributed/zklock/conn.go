package zklock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// greeting is how much of the server's first answer is read here: its length, the version of
// the protocol, the session timeout in milliseconds, and the id of the session. The id is 0 if
// the session is over.
const greeting = 4 + 4 + 4 + 8

// Codes of requests. The code follows the length and the number of a request.
const (
	atCode       = 8
	opAuth       = 100
	opSetWatches = 101
)

// link is one connection to a server, with or without TLS, as the ZooKeeper client uses it. link
// changes neither requests nor answers. It observes two events that the ZooKeeper client does not
// report: the session timeout that the server has granted, and that the watches were renewed on a
// new connection.
type link struct {
	net.Conn
	s      *session
	dialed time.Time // by driver.Now
	limit  time.Time // of the server's first answer
	host   string    // the client's own address

	first []byte // of the server's first answer; used by the goroutine that reads

	// Used by the goroutine that writes.
	renews bool   // the watches are still to be renewed
	held   []byte // requests to be sent after that

	greeted atomic.Bool // the first answer was read
}

// Read reads, and reports the server's first answer to the session, or why there is none.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err != nil && !l.greeted.Load() && !l.s.isOver() {
		l.s.c.fail(fmt.Errorf("no first answer of %v, which may not serve yet, or want TLS: %w", l.RemoteAddr(), err))
	}
	if len(l.first) < greeting {
		l.first = append(l.first, b[:min(n, greeting-len(l.first))]...)
		if len(l.first) == greeting {
			timeout := time.Duration(binary.BigEndian.Uint32(l.first[8:])) * time.Millisecond
			l.s.onGreeting(int64(binary.BigEndian.Uint64(l.first[12:])), timeout, l.dialed)
			l.greeted.Store(true)
		}
	}
	return n, err
}

// Write is called with one request at a time. After an error Write closes the connection and
// reports success: the ZooKeeper client learns of the end of the connection when it reads. If Write
// returned the error, the ZooKeeper client would report the failure of a request with credentials
// twice, and block for ever on the second report.
func (l *link) Write(b []byte) (int, error) {
	if err := l.write(b); err != nil {
		l.Close()
	}
	return len(b), nil
}

// write sends a request. On a new connection of an old session, write holds requests back until the
// watches are renewed. The server reports events since the last change that the ZooKeeper client
// heard of. The answer to another request would count as that change, and earlier events would be
// missed.
func (l *link) write(b []byte) error {
	op := uint32(0)
	if l.greeted.Load() && len(b) >= atCode+4 {
		op = binary.BigEndian.Uint32(b[atCode:])
	}
	if l.renews && op != 0 && op != opAuth && op != opSetWatches {
		l.held = append(l.held, b...)
		return nil
	}
	if op == opSetWatches {
		b = append(b[:len(b):len(b)], l.held...)
		l.renews, l.held = false, nil
		defer l.s.onRewatch(l)
	}
	_, err := l.Conn.Write(b)
	return err
}

// SetReadDeadline shortens the deadlines of the ZooKeeper client. The client's deadlines leave no
// time to find a better server before the session is over. The session asks the leader for answers
// more often than the shortened deadlines need.
func (l *link) SetReadDeadline(t time.Time) error {
	switch {
	case !l.greeted.Load():
		t = l.limit
	case !t.IsZero():
		if limit := time.Now().Add(l.s.term() * 3 / 8); limit.Before(t) {
			t = limit
		}
	}
	return l.Conn.SetReadDeadline(t)
}

// dial connects to a server. It refuses to connect for a session that is over: the ZooKeeper client
// would begin another session.
func (s *session) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if s.isOver() {
		return nil, zk.ErrClosing
	}
	term := s.term()
	dialed, limit := driver.Now(), time.Now().Add(max(term/4, 100*time.Millisecond))
	ctx, cancel := context.WithTimeout(s.c.life, max(term/8, min(timeout, term/4), 50*time.Millisecond))
	defer cancel()
	conn, err := s.c.dialer(ctx, network, address)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s ended the handshake of TLS, and may not want TLS: %w", address, err)
	}
	if err != nil {
		s.c.fail(err)
		return nil, err
	}
	l := &link{Conn: conn, s: s, dialed: dialed, limit: limit}
	if host, _, err := net.SplitHostPort(conn.LocalAddr().String()); err == nil {
		l.host = host
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.renews = s.authed
	if s.over != nil {
		conn.Close()
		return nil, zk.ErrClosing
	}
	if s.link != nil {
		s.link.Close() // the ZooKeeper client leaves some open
	}
	s.link = l
	return l, nil
}

// hangUp closes the connection of a session that is over, if the server has not answered on it.
// Such a server need not end a session, and the ZooKeeper client would wait a second for the
// server. hangUp waits until the ZooKeeper client asks for the next server. From then on the
// ZooKeeper client can be closed without delay.
func (l *link) hangUp() {
	if l.greeted.Load() {
		return
	}
	l.Close()
	select {
	case <-l.s.idle:
	case <-time.After(time.Second):
	}
}

// hosts gives the ZooKeeper client the servers in turn. The dialer gets their names, which it needs
// to verify certificates. After each round hosts waits, for less time than the ZooKeeper client
// would.
type hosts struct {
	s       *session
	servers []string
	next    int
	tried   int  // since the last connection
	told    bool // s.idle is closed
}

func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

// Next returns the next server. The ZooKeeper client checks whether it was closed if the second
// result is true.
func (h *hosts) Next() (server string, wait bool) {
	if h.tried > 0 && h.tried%len(h.servers) == 0 {
		pause(context.Background(), h.s.dead, min(h.s.term()/20, 250*time.Millisecond))
	}
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	h.tried++
	over := h.s.isOver()
	if over && !h.told {
		h.told = true
		close(h.s.idle)
	}
	return server, over
}

func (h *hosts) Connected() { h.tried = 0 }

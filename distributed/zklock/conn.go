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

// head is how much of each answer is read here. The first answer begins with its length, the
// version of the protocol, the session timeout in milliseconds, and the id of the session. The id
// is 0 if the session is over. Other answers begin with the length, the number of the request, the
// number of the last change, and the code of an error or 0.
const (
	head     = 4 + 4 + 8 + 4
	atNumber = 4
	atError  = 16
)

// Codes of requests. The code follows the length and the number of a request.
const (
	atCode       = 8
	opAuth       = 100
	opSetWatches = 101
	opClose      = 1<<32 - 11
)

// link is one connection to a server, with or without TLS, as the ZooKeeper client uses it. link
// changes neither requests nor answers. link observes three events that the ZooKeeper client does
// not report. The server grants a session timeout. The watches are renewed on a new connection. The
// server ends the session at its client's request.
type link struct {
	net.Conn
	s      *session
	dialed time.Time // by driver.Now
	limit  time.Time // of the server's first answer
	host   string    // the client's own address

	// Used by the goroutine that reads.
	head []byte // of the answer under way
	rest int    // how much of the answer follows its head

	// Used by the goroutine that writes.
	renews bool   // the watches are still to be renewed
	held   []byte // requests to be sent after that

	greeted  atomic.Bool   // the first answer was read
	farewell atomic.Uint32 // the number of the request that ends the session, or 0
}

// Read reads, and reports the server's first answer to the session, or why there is none.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err != nil && !l.greeted.Load() && !l.s.isOver() {
		l.s.c.fail(fmt.Errorf("no first answer of %v, which may not serve yet, or want TLS: %w", l.RemoteAddr(), err))
	}
	l.observe(b[:n])
	return n, err
}

// observe reads the heads of the answers in b, which continues what was read before.
func (l *link) observe(b []byte) {
	for len(b) > 0 {
		if l.rest > 0 {
			n := min(l.rest, len(b))
			l.rest, b = l.rest-n, b[n:]
			continue
		}
		n := min(head-len(l.head), len(b))
		l.head, b = append(l.head, b[:n]...), b[n:]
		if len(l.head) == head {
			l.rest = int(binary.BigEndian.Uint32(l.head)) - (head - atNumber)
			l.onAnswer(l.head)
			l.head = l.head[:0]
		}
	}
}

// onAnswer is called with the head of an answer.
func (l *link) onAnswer(head []byte) {
	switch {
	case !l.greeted.Load():
		timeout := time.Duration(binary.BigEndian.Uint32(head[8:])) * time.Millisecond
		l.s.onGreeting(int64(binary.BigEndian.Uint64(head[12:])), timeout, l.dialed)
		l.greeted.Store(true)
	case l.endsSession(binary.BigEndian.Uint32(head[atNumber:])) && binary.BigEndian.Uint32(head[atError:]) == 0:
		l.s.onEnd()
	}
}

// endsSession reports whether the request with this number ends the session. The ZooKeeper client
// counts its requests from 1, and comes to 0 after 2³¹ of them.
func (l *link) endsSession(number uint32) bool { return number != 0 && number == l.farewell.Load() }

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
	if op == opClose {
		l.farewell.Store(binary.BigEndian.Uint32(b[atNumber:]))
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

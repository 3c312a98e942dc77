package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// session is one session with the servers, from the attempt to begin it to its end. It has a
// ZooKeeper client of its own, which never gets another session. So no request that was meant for
// this session, such as the deletion of one of its nodes, can take effect in a later session.
//
//	starting  ready is open      connected and authenticated -> up; refused, or closed -> over
//	up        requests are sent  disconnected -> down; expired, or closed -> over
//	down      requests wait      connected, watches renewed -> up; expired, or closed -> over
//	over      dead is closed     for good
type session struct {
	introduced atomic.Bool // the node that describes the client was asked for

	c       *core
	conn    *zk.Conn
	dialed  chan struct{} // closed when conn is set
	ready   chan struct{} // closed when the session was up for the first time
	dead    chan struct{} // closed when the session is over
	idle    chan struct{} // closed when the ZooKeeper client has no connection after that
	watches watches
	synced  *adapter.Shared[struct{}] // the sync of syncOnce

	mu        sync.Mutex
	link      *link
	timeout   time.Duration // as granted by the server; before that, as asked for
	granted   bool
	ended     bool      // a server has said that the session is over
	confirmed time.Time // by driver.Now: when the last request was sent that the leader answered
	// authed is set when the server has accepted the credentials and the session has a watch
	// that never fires.
	authed  bool
	up      bool
	over    error         // why the session is over
	changed chan struct{} // closed when up or over changes
}

// start begins a session.
func (c *core) start() (*session, error) {
	s := &session{
		c:       c,
		dialed:  make(chan struct{}),
		ready:   make(chan struct{}),
		dead:    make(chan struct{}),
		idle:    make(chan struct{}),
		timeout: c.timeout,
		changed: make(chan struct{}),
		watches: watches{m: make(map[target]*watch)},
	}
	s.synced = adapter.NewShared(&c.jobs, max(c.timeout/30, 5*time.Millisecond), func() (struct{}, error) {
		ctx, cancel := c.within(s.term())
		defer cancel()
		return struct{}{}, s.sync(ctx, "/")
	})
	conn, _, err := zk.Connect(c.servers, c.timeout,
		zk.WithDialer(s.dial),
		zk.WithHostProvider(&hosts{s: s}),
		zk.WithEventCallback(s.event),
		zk.WithLogger(debugLog{c.log}),
		zk.WithLogInfo(false),
	)
	if err != nil {
		return nil, err
	}
	s.conn = conn
	close(s.dialed)
	return s, nil
}

func (s *session) term() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// host returns the client's own address.
func (s *session) host() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return ""
	}
	return s.link.host
}

// onGreeting is called with the server's first answer on a connection. A server asks the leader
// about a session that began elsewhere, so the answer confirms the session. A server with a shorter
// timeout than the server before has shortened the session, and holds that rely on the longer
// timeout are lost.
func (s *session) onGreeting(id int64, timeout time.Duration, dialed time.Time) {
	if id == 0 || timeout <= 0 {
		return
	}
	s.mu.Lock()
	shorter := s.granted && timeout < s.timeout
	if !s.granted {
		s.c.lasting.Add(1)
	}
	s.timeout, s.granted = timeout, true
	if dialed.After(s.confirmed) {
		s.confirmed = dialed
	}
	s.mu.Unlock()
	if shorter {
		s.c.jobs.Go(func() { s.c.drop(s, errors.New("the server has shortened the session")) })
	}
}

// event is called by the ZooKeeper client, and must not block.
func (s *session) event(e zk.Event) {
	switch {
	case e.Type == zk.EventNotWatching:
	case e.Type != zk.EventSession:
		s.watches.fire(e)
	case e.State == zk.StateHasSession:
		s.mu.Lock()
		authed := s.authed
		s.mu.Unlock()
		if !authed { // otherwise onRewatch follows
			s.c.jobs.Go(s.authenticate)
		}
	case e.State == zk.StateDisconnected || e.State == zk.StateConnecting:
		s.mu.Lock()
		s.change(false, nil)
		s.mu.Unlock()
	case e.State == zk.StateExpired:
		s.onEnd()
		s.end(zk.ErrSessionExpired)
	}
}

// onEnd is called when a server has said that the session is over. Then none of its nodes is left,
// and no request of the session can make another.
func (s *session) onEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted && !s.ended {
		s.c.lasting.Add(-1)
	}
	s.ended = true
}

// closedForAuth is the text of the ZooKeeper client for SESSIONCLOSEDREQUIRESASLAUTH, a code that
// the client does not know. The server enforces a scheme of authentication, and has ended a session
// without it.
const closedForAuth = "unknown error: -124"

// authenticate gives the server the credentials, which the ZooKeeper client repeats on each
// connection, and sets the watch that never fires. Because of this watch the ZooKeeper client
// renews watches on each later connection, and onRewatch is called.
func (s *session) authenticate() {
	<-s.dialed
	for _, a := range s.c.auth {
		if err := s.conn.AddAuth(a.scheme, a.secret); err != nil {
			if errors.Is(err, zk.ErrAuthFailed) {
				s.end(fmt.Errorf("credentials of scheme %q are refused: %w", a.scheme, zk.ErrAuthFailed))
			}
			return // repeated on the next connection
		}
	}
	// Once on each connection with a watch to renew, the ZooKeeper client reads without a lock a
	// field that the first answer writes. It does not report that moment. On the first connection
	// the moment is over by the end of this pause. On later connections onRewatch reports it.
	adapter.Sleep(s.c.life, 20*time.Millisecond)
	if _, _, _, err := s.conn.ExistsW("/zookeeper"); err != nil {
		if err.Error() == closedForAuth {
			s.end(fmt.Errorf("the server wants SASL, or credentials of another scheme: %w", zk.ErrAuthFailed))
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.authed || s.over != nil {
		return
	}
	s.authed = true
	s.change(s.conn.State() == zk.StateHasSession, nil)
}

// onRewatch is called when the watches were renewed on l. The server then reports the events of the
// watches since the last connection.
func (s *session) onRewatch(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l && s.authed {
		s.change(true, nil)
	}
}

// change notes whether requests can be sent, or why the session is over. s.mu is held.
func (s *session) change(up bool, over error) {
	if s.over != nil || s.up == up && over == nil {
		return
	}
	s.up, s.over = up, over
	if over != nil {
		close(s.dead)
	}
	if up {
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
	s.c.beats.Ring()
}

// end notes that the session is over. The loop of the core does the rest.
func (s *session) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(false, why)
}

func (s *session) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over != nil
}

// await waits for a connection, until the session is over or ctx ends.
func (s *session) await(ctx context.Context) error {
	for {
		s.mu.Lock()
		up, over, changed := s.up, s.over, s.changed
		s.mu.Unlock()
		switch {
		case over != nil:
			return over
		case up:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.c.notConnected(ctx)
		}
	}
}

// confirm returns the time from which a hold for d counts: when the last request was sent that the
// leader has answered. It asks the leader if that request is older than a third of d or of the
// session timeout. A server that has lost the leader still answers reads and reports events, while
// the leader hears nothing of the session.
func (s *session) confirm(ctx context.Context, d time.Duration) (time.Time, error) {
	fresh := func(limit time.Duration) (at time.Time, ok bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.confirmed, driver.Now().Sub(s.confirmed) < limit
	}
	if at, ok := fresh(min(s.term(), d) / 3); ok {
		return at, nil
	}
	if err := s.syncOnce(ctx); inDoubt(err) {
		return time.Time{}, err
	}
	if at, ok := fresh(s.term() / 3); ok {
		return at, nil
	}
	return time.Time{}, errNoAnswer
}

// Errors of requests that were not answered. They never match the error of a context: the
// contexts of requests are not the caller's.
const (
	errNoAnswer     unanswered = "no answer in time"
	errNotConnected unanswered = "not connected to ZooKeeper"
)

// unanswered is a [net.Error], so that a caller can tell it from an answer of the server.
type unanswered string

func (e unanswered) Error() string { return string(e) }
func (unanswered) Timeout() bool   { return true }
func (unanswered) Temporary() bool { return true }

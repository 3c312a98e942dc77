package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// errTimeout is of a request to which no answer came in time.
var errTimeout = errors.New("no answer in time")

// isTrouble reports whether err, of a request, leaves open whether the request was carried out. All else is the server's answer.
func isTrouble(err error) bool {
	if err == nil {
		return false
	}
	for _, answer := range []error{
		zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrInvalidACL,
		zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrReconfigDisabled,
	} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

// session is one session with the servers, from the attempt to begin it to its end. It has a ZooKeeper client of its own,
// which never
// gets another session: so no request that was meant for this session, such as the deletion of a node of its, can take place in a
// later one.
//
//	starting  up and over unset, ready open     authenticated and connected -> up
//	up        connected, authenticated          disconnected -> down; expired, or closed -> over
//	down      between two connections           connected -> up; expired, or closed -> over
//	over      dead is closed                    for good
type session struct {
	c      *core
	conn   *zk.Conn
	dialed chan struct{} // closed when conn is set
	ready  chan struct{} // closed when it was up for the first time
	dead   chan struct{} // closed when over
	points points
	births births
	links  atomic.Int64 // how many connections it has had

	mu      sync.Mutex
	flights map[*flight]struct{} // requests that are waited for
	wire    *wire
	id      int64
	timeout time.Duration // as the server has granted it; before that, what is asked for
	granted bool
	contact time.Time // when the last request was sent that was answered
	led     time.Time // when the last one was sent that the leader answered: a write, a sync, or a connection's first
	authed  bool
	// anchored is set if the client has a watch that never fires, so that it tells its watches at each new connection.
	anchored bool
	up       bool
	over     error         // why it is
	changed  chan struct{} // closed when up or over changes
}

// start begins a session. It fails if the names of the servers are not known.
func (c *core) start() (*session, error) {
	s := &session{
		c:       c,
		dialed:  make(chan struct{}),
		ready:   make(chan struct{}),
		dead:    make(chan struct{}),
		timeout: c.timeout,
		changed: make(chan struct{}),
		flights: make(map[*flight]struct{}),
	}
	s.points.m = make(map[place]*point)
	s.births.m = make(map[string]*birth)
	conn, _, err := zk.Connect(c.servers, c.timeout,
		zk.WithDialer(s.dial),
		zk.WithHostProvider(hosts{zk.NewDNSHostProvider(), s}),
		zk.WithEventCallback(s.event),
		zk.WithLogger(quiet{c.log}),
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

// number returns the id that the servers have given the session.
func (s *session) number() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// greeted is told what the server's first answer says. A server whose timeout is shorter than that of the one before has
// shortened the session: nothing is held any more that relied on the longer one.
func (s *session) greeted(id int64, timeout time.Duration, dialed time.Time) {
	if id == 0 || timeout <= 0 {
		return
	}
	s.mu.Lock()
	shorter := s.granted && timeout < s.timeout
	s.id, s.timeout, s.granted = id, timeout, true
	if dialed.After(s.contact) {
		s.contact = dialed
	}
	if dialed.After(s.led) {
		s.led = dialed // a server asks the leader for a session that is not its own yet
	}
	s.mu.Unlock()
	if shorter {
		s.c.spawn(func() { s.c.drop(s, errors.New("the server has shortened the session")) })
	}
}

// event is called by the ZooKeeper client, and must not wait for anything.
func (s *session) event(e zk.Event) {
	switch {
	case e.Type == zk.EventNotWatching:
	case e.Type != zk.EventSession:
		s.points.fire(e)
	case e.State == zk.StateHasSession:
		s.links.Add(1) // before anything is heard of this connection
		s.mu.Lock()
		authed := s.authed
		if authed {
			s.setUp(true)
		}
		s.mu.Unlock()
		if authed {
			// What happened meanwhile is told by the server when the client has set its watches anew. But everybody looks anyway.
			s.points.tellAll(zk.Event{Type: zk.EventNotWatching})
		} else {
			s.c.spawn(s.authenticate)
		}
	case e.State == zk.StateDisconnected || e.State == zk.StateConnecting:
		s.mu.Lock()
		s.setUp(false)
		s.mu.Unlock()
	case e.State == zk.StateExpired:
		s.end(zk.ErrSessionExpired)
	}
}

// authenticate tells the server the credentials, which the client repeats whenever it connects, and makes the session usable.
func (s *session) authenticate() {
	<-s.dialed
	for _, a := range s.c.auth {
		if err := s.conn.AddAuth(a.scheme, a.secret); err != nil {
			if errors.Is(err, zk.ErrAuthFailed) {
				s.end(fmt.Errorf("credentials of scheme %q are refused: %w", a.scheme, zk.ErrAuthFailed))
			}
			return // tried again at the next connection
		}
	}
	s.mu.Lock()
	s.anchored = true
	s.mu.Unlock()
	// On each connection the client looks for watches to tell, some time after the event that there is a session, and tells
	// nobody that it has. On the first there is none yet. It has looked by the end of this pause; should it be later, and find
	// this one, it tells the server what that knows already. (Then it also reads the number of the last transaction without a lock,
	// which the race detector may report.)
	pause(s.c.life, 20*time.Millisecond)
	if _, _, _, err := s.conn.ExistsW("/zookeeper"); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.authed || s.over != nil {
		return
	}
	s.authed = true
	s.setUp(s.conn.State() == zk.StateHasSession)
}

// setUp notes whether there is a connection. s.mu is held.
func (s *session) setUp(up bool) {
	if s.over != nil || s.up == up {
		return
	}
	s.up = up
	s.turn()
	if up {
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	}
}

// turn tells those who wait for a change. s.mu is held.
func (s *session) turn() {
	close(s.changed)
	s.changed = make(chan struct{})
	s.c.pulse()
}

// end notes that the session is over. The core does the rest.
func (s *session) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return
	}
	s.over, s.up = why, false
	close(s.dead)
	s.turn()
}

// confirmed returns when the last request was sent that the leader answered, if that was lately, as is good for a hold of length d:
// less than a third of that, and of the session timeout, ago; and if link is the present connection. A server that has lost the leader answers questions still, while the leader hears nothing
// of the session: so a hold that comes of an answer to a question, or of an event, counts from there.
func (s *session) confirmed(link int64, d time.Duration) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.led, s.up && s.links.Load() == link && time.Since(s.led) < min(s.timeout, d)/3
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
			return notConnected(ctx)
		}
	}
}

func notConnected(ctx context.Context) error {
	return fmt.Errorf("not connected to ZooKeeper: %w", context.Cause(ctx))
}

// flight is a request that is waited for.
type flight struct {
	wire *wire // on which it is sent, unless that ends just now
	sent time.Time
	led  bool // the leader has to answer it
}

// depart notes that a request is sent, when there is a connection. It waits for one as await does.
func (s *session) depart(ctx context.Context, f *flight) error {
	for !s.departNow(f) {
		if err := s.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// departNow is depart, but it reports false if there is no connection.
func (s *session) departNow(f *flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up {
		f.wire, f.sent = s.wire, time.Now()
		s.flights[f] = struct{}{}
	}
	return s.up
}

// land notes that a request is not waited for any more, because it was answered or for another reason.
func (s *session) land(f *flight, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, f)
	if answered && f.sent.After(s.contact) {
		s.contact = f.sent
	}
	if answered && f.led && f.sent.After(s.led) {
		s.led = f.sent
	}
}

// unblock closes the connections of requests that are waited for since a time: there is one look at all of them now and then,
// for a timer of each would cost more than the request.
func (s *session) unblock(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.flights {
		if f.sent.Before(since) {
			f.wire.Close()
		}
	}
}

// asked is a request that was sent.
type asked[T any] struct {
	flight
	s       *session
	failed  error // why it was not sent
	answers chan answer[T]
}

type answer[T any] struct {
	v   T
	err error
}

// ask sends a request when there is a connection. Its answer has to be waited for. The ZooKeeper client does not know contexts, so
// the request has a goroutine.
func ask[T any](ctx context.Context, s *session, request func(*zk.Conn) (T, error)) *asked[T] {
	q := &asked[T]{s: s}
	if q.failed = s.depart(ctx, &q.flight); q.failed != nil {
		return q
	}
	q.answers = make(chan answer[T], 1)
	go func() {
		v, err := request(s.conn)
		q.answers <- answer[T]{v, err}
	}()
	return q
}

// wait waits for the answer until ctx ends or the session does. One that comes later is dropped. A connection on which no answer
// comes for a third of the session timeout is closed: there is time to find a better one, while the session lasts.
func (q *asked[T]) wait(ctx context.Context) (T, error) {
	var a answer[T]
	if q.failed != nil {
		return a.v, q.failed
	}
	select {
	case a = <-q.answers:
	case <-q.s.dead:
		a.err = zk.ErrSessionExpired
	case <-ctx.Done():
		a.err = errTimeout
		if cause := context.Cause(ctx); cause != errTimeout {
			a.err = fmt.Errorf("%w: %w", errTimeout, cause)
		}
	}
	q.s.land(&q.flight, !isTrouble(a.err))
	return a.v, a.err
}

// lead is call, of a request that the leader has to answer.
func lead[T any](ctx context.Context, s *session, request func(*zk.Conn) (T, error)) (T, error) {
	q := ask(ctx, s, request)
	q.led = true
	return q.wait(ctx)
}

// call sends a request and waits for its answer.
func call[T any](ctx context.Context, s *session, request func(*zk.Conn) (T, error)) (T, error) {
	return ask(ctx, s, request).wait(ctx)
}

// stat is what is asked of a node.
type stat struct {
	data []byte
	zk.Stat
}

func (s *session) create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	return lead(ctx, s, func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, s.c.acl) })
}

// made is a node that was created.
type made struct {
	path  string
	czxid uint64 // 0 if it is not known
}

// createIn is create, of a path that nobody else creates. If dir is not "", it lists the children of that as they are when the node
// is there: both requests are sent before there is an answer, in this order. listed is nil if the second has failed.
func (s *session) createIn(ctx context.Context, path string, data []byte, flags int32, dir string,
) (m made, listed []string, err error) {
	b := s.births.begin(path)
	creation := ask(ctx, s, func(c *zk.Conn) (made, error) {
		defer s.births.end(b)
		path, err := c.Create(path, data, flags, s.c.acl)
		if err != nil {
			return made{}, err
		}
		return made{path, uint64(b.czxid)}, nil
	})
	creation.led = true
	if creation.failed != nil {
		s.births.end(b)
		return m, nil, creation.failed
	}
	if dir == "" {
		m, err = creation.wait(ctx)
		return m, nil, err
	}
	listing := ask(ctx, s, func(c *zk.Conn) ([]string, error) {
		if <-b.sent; b.never {
			return nil, errTimeout
		}
		names, _, err := c.Children(dir)
		return names, err
	})
	m, err = creation.wait(ctx)
	names, failed := listing.wait(ctx)
	if err == nil && failed == nil {
		listed = names
	}
	return m, listed, err
}

func (s *session) children(ctx context.Context, dir string) ([]string, error) {
	return call(ctx, s, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(dir)
		return names, err
	})
}

func (s *session) get(ctx context.Context, path string) (stat, error) {
	return s.askFor(ctx, path).wait(ctx)
}

// askFor is get without the wait.
func (s *session) askFor(ctx context.Context, path string) *asked[stat] {
	return ask(ctx, s, func(c *zk.Conn) (stat, error) {
		data, st, err := c.Get(path)
		if err != nil {
			return stat{}, err
		}
		return stat{data, *st}, nil
	})
}

func (s *session) delete(ctx context.Context, path string) error {
	_, err := lead(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
	return err
}

func (s *session) set(ctx context.Context, path string, data []byte) error {
	_, err := lead(ctx, s, func(c *zk.Conn) (struct{}, error) {
		_, err := c.Set(path, data, -1)
		return struct{}{}, err
	})
	return err
}

// sync has the server catch up with the leader, which knows the session still if it succeeds.
func (s *session) sync(ctx context.Context, path string) error {
	_, err := lead(ctx, s, func(c *zk.Conn) (string, error) { return c.Sync(path) })
	return err
}

// getWatched is get, and makes sure that who listens at path is told of the next change, unless the result says that it has
// happened already.
func (s *session) getWatched(ctx context.Context, path string) (st stat, changed bool, err error) {
	at := place{path, false}
	needed, fired := s.points.arming(at)
	if !needed {
		st, err = s.get(ctx, path)
		return st, err == nil && !s.points.isArmed(at), err
	}
	st, err = call(ctx, s, func(c *zk.Conn) (stat, error) {
		data, st, _, err := c.GetW(path)
		if err != nil {
			return stat{}, err
		}
		return stat{data, *st}, nil
	})
	return st, err == nil && !s.points.armed(at, fired), err
}

// childrenWatched is to children what getWatched is to get.
func (s *session) childrenWatched(ctx context.Context, dir string) (names []string, changed bool, err error) {
	at := place{dir, true}
	needed, fired := s.points.arming(at)
	if !needed {
		names, err = s.children(ctx, dir)
		return names, err == nil && !s.points.isArmed(at), err
	}
	names, err = call(ctx, s, func(c *zk.Conn) ([]string, error) {
		names, _, _, err := c.ChildrenW(dir)
		return names, err
	})
	return names, err == nil && !s.points.armed(at, fired), err
}

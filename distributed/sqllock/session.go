package sqllock

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// A lock of a session lasts as long as the session. Only the client knows the lease: the client
// closes a session whose connection has not answered for the time of a lease, after it has told the
// holder. So a hold is over before the server ends the session, unless the server ends the session
// by itself, such as on an administrator's order. In that case the holder finds out at the next
// renewal, which asks the session whether it has the lock, or at its release.
//
//	session   in held   connection
//	taking    no        pinned; discarded on an error, and put back if refused
//	held      yes       pinned; a request takes its turn to use it, and is not given up
//	released  no        put back if the server has said that the lock is free, and discarded if not
//	ended     no        discarded: an error, the lock is gone, or the lease is over
//
// The goroutine that removes a session from held, under the mutex, decides how the session ends.
// From then on no other goroutine uses the connection.

// errGone reports that the session does not have the lock any more.
var errGone = errors.New("the session has lost the lock")

type session struct {
	ref  driver.HoldID
	conn *sql.Conn
	id   int64
	turn chan struct{} // has an element while a request uses conn
	ctx  context.Context
	end  context.CancelFunc

	// Guarded by sessionStore.mu.
	until time.Time   // when its lease is over
	over  *time.Timer // for then
}

// sessionStore is the [driver.Store] of the locks of sessions.
type sessionStore struct {
	c    *core
	lost func(r driver.HoldID, cause error)

	mu      sync.Mutex
	held    map[driver.HoldID]*session
	blocked map[driver.HoldID]*blocked
	closed  bool // nothing is added to held
	known   knownSessions
	ending  sync.WaitGroup // sessions that are removed from held, and not discarded yet
}

var (
	_ driver.Store        = (*sessionStore)(nil)
	_ driver.LossNotifier = (*sessionStore)(nil)
)

func newSessionStore(c *core) *sessionStore {
	return &sessionStore{c: c, held: make(map[driver.HoldID]*session), blocked: make(map[driver.HoldID]*blocked)}
}

func newSession(id driver.HoldID, conn *sql.Conn, number int64) *session {
	return &session{ref: id, conn: conn, id: number, turn: make(chan struct{}, 1)}
}

// NotifyLoss keeps the engine's function for lost holds.
func (s *sessionStore) NotifyLoss(lost func(r driver.HoldID, cause error)) { s.lost = lost }

// discard ends conn's session, as far as a client can, and does not give it back to the pool.
func discard(conn *sql.Conn) {
	conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	conn.Close()
}

func (s *sessionStore) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return s.acquire(ctx, req, nil)
}

// acquire is Acquire. If the lock is taken and b is not nil, acquire begins b's statement, which
// waits for the lock.
func (s *sessionStore) acquire(ctx context.Context, req driver.Request, b *blocked) (driver.Reply, error) {
	if err := s.c.start.fit(ctx); err != nil {
		return driver.Reply{}, err
	}
	var sess *session
	err := s.c.request(ctx, func(ctx context.Context) error {
		conn, err := s.c.db.Conn(ctx)
		if err != nil {
			return err
		}
		t, err := s.take(ctx, conn, req.Name)
		switch {
		case err != nil && !t.clean:
			discard(conn)
		case t.held:
			sess = newSession(req.HoldID, conn, t.own)
		case err == nil && b != nil && s.block(b, req.HoldID, conn, t.own):
		default:
			conn.Close()
			if t.holder != 0 {
				s.c.onRefusal(req.Name, t.holder)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return s.failure(err)
	case sess == nil:
		return driver.Reply{}, nil
	}
	return s.keep(sess, req.TTL)
}

// failure is the reply to an acquisition that has failed. A lock that the request took has ended
// with the connection, or will end as soon as the server notices.
func (s *sessionStore) failure(err error) (driver.Reply, error) {
	if s.c.dialect.classify(err) == busy {
		return driver.Reply{}, nil
	}
	return driver.Reply{}, s.c.notAcquired(err)
}

// keep begins the hold of a session that has the lock.
func (s *sessionStore) keep(sess *session, ttl time.Duration) (driver.Reply, error) {
	sess.ctx, sess.end = context.WithCancel(context.Background())
	s.mu.Lock()
	closed := s.closed
	if !closed {
		if ended := s.held[sess.ref]; ended != nil { // the server has ended it: this is the request repeated
			ended.over.Stop()
			s.ending.Add(1)
			s.bury(ended)
		}
		s.held[sess.ref] = sess
		sess.until = time.Now().Add(ttl)
		sess.over = time.AfterFunc(ttl, func() { s.drop(sess, nil) })
	}
	s.mu.Unlock()
	if closed {
		sess.end()
		discard(sess.conn)
		return driver.Reply{}, errClosing
	}
	return driver.Reply{Held: true}, nil
}

// Lookup finds out which holds have a session here. An acquisition of unknown outcome leaves no
// session, so its lock ends with the connection.
func (s *sessionStore) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return driver.Reply{Held: s.held[req.HoldID] != nil}, nil
}

// remove removes sess from held, and reports whether it was there.
func (s *sessionStore) remove(sess *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[sess.ref] != sess {
		return false
	}
	delete(s.held, sess.ref)
	sess.over.Stop()
	s.ending.Add(1)
	return true
}

// drop ends a session that does not have the lock any more, or does not answer, or whose lease is
// over. By then the holder knows, unless the hold was prolonged less than the engine thinks.
func (s *sessionStore) drop(sess *session, cause error) {
	if !s.remove(sess) {
		return
	}
	s.lost(sess.ref, cause)
	s.bury(sess)
}

// bury discards the connection of a session that is removed. It waits for its turn, because
// [sql.Conn] panics now and then in a request beside its Close.
func (s *sessionStore) bury(sess *session) {
	sess.end()
	go func() { // a driver may take its time
		defer s.ending.Done()
		sess.turn <- struct{}{}
		discard(sess.conn)
	}()
}

// use waits for the turn to use the connection of a session until wait ends. Nobody gets a turn
// after the end of the session. The context that use returns ends with ctx, and with the session.
func (sess *session) use(wait, ctx context.Context) (context.Context, func(), error) {
	select {
	case sess.turn <- struct{}{}:
	case <-wait.Done():
		return nil, nil, wait.Err()
	case <-sess.ctx.Done():
		return nil, nil, errGone
	}
	if sess.ctx.Err() != nil {
		<-sess.turn
		return nil, nil, errGone
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(sess.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		<-sess.turn
	}, nil
}

// renewal is one call of Renew.
type renewal struct {
	s       *sessionStore
	ctx     context.Context
	began   time.Time
	d       time.Duration
	gone    bool         // the caller has got what there was; guarded by s.mu
	answers chan renewed // has room for all
}

// renewed is the answer of the session of a hold.
type renewed struct {
	hold int
	ok   bool
	err  error // if the server refused to tell
}

// Renew asks all sessions at once. Giving a request up would make its connection unusable, and end
// the lock. So Renew waits for each request until the lease of its session is over, if need be in
// the background. The caller waits until ctx ends. If other sessions have answered, the caller
// waits only for a third of the time d: one dead connection must not end the holds of the others.
func (s *sessionStore) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	r := &renewal{s: s, ctx: ctx, began: time.Now(), d: d, answers: make(chan renewed, len(holds))}
	missing := 0
	for i, h := range holds {
		s.mu.Lock()
		sess := s.held[h]
		s.mu.Unlock()
		if sess != nil {
			missing++
			go r.ask(i, sess)
		}
	}
	ok := make([]bool, len(holds))
	var refusal error
	note := func(a renewed) { ok[a.hold], refusal = a.ok, cmp.Or(a.err, refusal); missing-- }
	var slow <-chan time.Time
	for missing > 0 {
		var err error
		select {
		case a := <-r.answers:
			note(a)
			if slow == nil {
				slow = time.After(time.Until(r.began.Add(d / 3)))
			}
			continue
		case <-slow:
			err = ErrTimeout
		case <-ctx.Done():
			err = adapter.Ended(ctx)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		r.gone = true
		for len(r.answers) > 0 {
			note(<-r.answers)
		}
		return ok, err
	}
	return ok, refusal
}

// ask asks whether a session has its lock, and prolongs the session. If the caller has gone, the
// engine treats the outcome as unknown, and a prolonged session would keep the lock for nobody.
func (r *renewal) ask(hold int, sess *session) {
	s := r.s
	using, done, err := sess.use(r.ctx, context.WithoutCancel(r.ctx))
	if using == nil && r.ctx.Err() != nil {
		return
	}
	if err == nil {
		defer done()
		err = s.alive(using, sess.conn, sess.ref.Name, sess.id)
	}
	switch {
	case err != nil && s.c.goesOn(err):
		r.answers <- renewed{hold, false, err}
		return
	case err != nil:
		s.drop(sess, err)
		r.answers <- renewed{hold, false, nil}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until := r.began.Add(r.d)
	held := s.held[sess.ref] == sess
	if held && (!r.gone || until.Before(sess.until)) {
		sess.until = until
		sess.over.Reset(time.Until(until))
	}
	r.answers <- renewed{hold, held, nil}
}

// goesOn reports whether a session goes on after a statement that has failed with err: the server
// has refused the statement alone.
func (c *core) goesOn(err error) bool {
	switch c.dialect.classify(err) {
	case interrupted, classes.Request, classes.Moment, busy:
		return !errors.Is(err, ErrUnsupportedTopology)
	}
	return false
}

func (s *sessionStore) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	s.mu.Lock()
	sess := s.held[id]
	s.mu.Unlock()
	if sess == nil || !s.remove(sess) {
		return driver.Released{}, nil
	}
	var had bool
	var using context.Context
	done := func() {}
	defer func() { // also if the driver panics
		sess.end() // before the turn is given back
		done()
		if had {
			sess.conn.Close()
			s.ending.Done()
			return
		}
		// Only the session's own answer says that it had the lock until now. Without an answer the
		// lock is lost, perhaps long ago, and at the latest when the server notices that the
		// connection is closed.
		s.bury(sess)
	}()
	err := s.c.request(ctx, func(ctx context.Context) (err error) {
		if using == nil {
			u, d, err := sess.use(ctx, ctx)
			if err != nil {
				return err
			}
			using, done = u, d
		}
		had, err = s.free(using, sess.conn, id.Name)
		switch s.c.dialect.classify(err) {
		case interrupted, classes.Moment:
			err = driver.Mark(err, errTaken) // request repeats it
		}
		return err
	})
	had = had && err == nil
	return driver.Released{Held: had, Awaited: true}, nil
}

func (s *sessionStore) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	return s.c.watch(id), nil
}

// close ends the sessions that are left after the engine has closed. It waits for their ends until
// ctx ends.
func (s *sessionStore) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	left := make([]*session, 0, len(s.held))
	for _, sess := range s.held {
		left = append(left, sess)
	}
	waits := s.blocked
	s.blocked = nil
	s.mu.Unlock()
	for _, sess := range left {
		s.drop(sess, nil)
	}
	for _, b := range waits {
		b.leave()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ending.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

package sqllock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
)

// A lock of a session lasts as long as the session. The lease is the client's own affair here: the
// client closes a session whose connection has not answered for the time of a lease, after its
// holder was told. A hold is therefore over before the server ends the session, unless the server
// does so by itself, such as on an administrator's order. Then the holder finds out at the next
// renewal, which asks the session whether it has the lock, or at its release.
//
//	session   in held   connection
//	taking    no        pinned; discarded on an error, and put back if refused
//	held      yes       pinned; a request takes its turn to use it
//	released  no        put back if the server has said that the lock is free, and discarded if not
//	ended     no        discarded: an error, the lock is gone, or the lease is over
//
// The goroutine that removes a session from held, under the mutex, decides how it ends. No
// other one uses its connection then.

// errGone reports that the session does not have the lock any more.
var errGone = errors.New("the session has lost the lock")

type session struct {
	ref  lease.HoldID
	conn *sql.Conn
	id   int64
	turn chan struct{} // has an element while a request uses conn
	ctx  context.Context
	end  context.CancelFunc
	over *time.Timer // when its lease is
}

// sessionStore is the [lease.Store] of the locks of sessions.
type sessionStore struct {
	c    *core
	lost func(r lease.HoldID, cause error)

	mu      sync.Mutex
	held    map[lease.HoldID]*session
	blocked map[lease.HoldID]*blocked
	closed  bool           // nothing is added to held
	ending  sync.WaitGroup // sessions that are removed from held, and not discarded yet
}

var (
	_ lease.Store        = (*sessionStore)(nil)
	_ lease.LossNotifier = (*sessionStore)(nil)
)

func newSessionStore(c *core) *sessionStore {
	return &sessionStore{c: c, held: make(map[lease.HoldID]*session), blocked: make(map[lease.HoldID]*blocked)}
}

func newSession(id lease.HoldID, conn *sql.Conn, number int64) *session {
	return &session{ref: id, conn: conn, id: number, turn: make(chan struct{}, 1)}
}

// NotifyLoss keeps the engine's function for lost holds.
func (s *sessionStore) NotifyLoss(lost func(r lease.HoldID, cause error)) { s.lost = lost }

// discard ends conn's session, as far as a client can, and does not give it back to the pool.
func discard(conn *sql.Conn) {
	conn.Raw(func(any) error { return driver.ErrBadConn })
	conn.Close()
}

func (s *sessionStore) Acquire(ctx context.Context, req lease.Request) (lease.Reply, error) {
	return s.acquire(ctx, req, nil)
}

// acquire is Acquire. If the lock is taken and b is not nil, its statement goes on to wait for it.
func (s *sessionStore) acquire(ctx context.Context, req lease.Request, b *blocked) (lease.Reply, error) {
	if err := s.c.start.fit(ctx); err != nil {
		return lease.Reply{}, err
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
				s.c.refused(req.Name, t.holder)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return s.failed(err)
	case sess == nil:
		return lease.Reply{}, nil
	}
	return s.keep(sess, req.TTL)
}

// failed is the reply to an acquisition that has failed. Whatever there was has ended with the
// connection, or will as soon as the server notices.
func (s *sessionStore) failed(err error) (lease.Reply, error) {
	if s.c.dialect.classify(err) == busy {
		return lease.Reply{}, nil
	}
	return lease.Reply{}, s.c.notAcquired(err)
}

// keep begins the hold of a session that has the lock.
func (s *sessionStore) keep(sess *session, ttl time.Duration) (lease.Reply, error) {
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
		sess.over = time.AfterFunc(ttl, func() { s.drop(sess, nil) })
	}
	s.mu.Unlock()
	if closed {
		sess.end()
		discard(sess.conn)
		return lease.Reply{}, errClosing
	}
	return lease.Reply{Held: true}, nil
}

// Lookup tells which holds have a session here. An acquisition of unknown outcome leaves none, so
// that its lock ends with the connection.
func (s *sessionStore) Lookup(ctx context.Context, req lease.Request) (lease.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return lease.Reply{Held: s.held[req.HoldID] != nil}, nil
}

// remove reports whether sess was held, which it is not from now on.
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
// over. Then its holder knows, unless the hold was prolonged less than the engine thinks.
func (s *sessionStore) drop(sess *session, cause error) {
	if !s.remove(sess) {
		return
	}
	s.lost(sess.ref, cause)
	s.bury(sess)
}

// bury discards the connection of a session that is removed.
func (s *sessionStore) bury(sess *session) {
	sess.end()
	go func() { // a driver may take its time
		defer s.ending.Done()
		discard(sess.conn)
	}()
}

// use waits for the turn to use the connection of a session.
func (sess *session) use(ctx context.Context) (context.Context, func(), error) {
	select {
	case sess.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-sess.ctx.Done():
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

// Renew asks all sessions at once. A connection on which a request was given up is of no use any
// more, and the lock would end with it. So each session has the whole time of its lease to answer,
// also when ctx has ended.
func (s *sessionStore) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	began := time.Now()
	type answer struct {
		hold int
		ok   bool
	}
	answers := make(chan answer, len(holds))
	asked := 0
	for i, h := range holds {
		s.mu.Lock()
		sess := s.held[h]
		s.mu.Unlock()
		if sess == nil {
			continue
		}
		asked++
		go func() { answers <- answer{i, s.renew(context.WithoutCancel(ctx), sess, began, d)} }()
	}
	ok := make([]bool, len(holds))
	for range asked {
		select {
		case a := <-answers:
			ok[a.hold] = a.ok
		case <-ctx.Done():
			return ok, adapter.Ended(ctx)
		}
	}
	return ok, nil
}

func (s *sessionStore) renew(ctx context.Context, sess *session, began time.Time, d time.Duration) bool {
	using, done, err := sess.use(ctx)
	if err == nil {
		err = s.alive(using, sess.conn, sess.ref.Name, sess.id)
		done()
	}
	if err != nil {
		s.drop(sess, err)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[sess.ref] != sess {
		return false
	}
	sess.over.Reset(time.Until(began.Add(d)))
	return true
}

func (s *sessionStore) Release(ctx context.Context, id lease.HoldID) (lease.Released, error) {
	s.mu.Lock()
	sess := s.held[id]
	s.mu.Unlock()
	if sess == nil || !s.remove(sess) {
		return lease.Released{}, nil
	}
	defer s.ending.Done()
	defer sess.end()
	var had bool
	err := s.c.request(ctx, func(ctx context.Context) error {
		using, done, err := sess.use(ctx)
		if err != nil {
			return err
		}
		defer done()
		had, err = s.free(using, sess.conn, id.Name)
		return err
	})
	if err != nil || !had {
		// Only the session's own answer says that it had the lock until now. Without one the
		// lock is lost, perhaps long ago, and at the latest when the server notices that the
		// connection is closed.
		sess.end()
		discard(sess.conn)
		return lease.Released{Awaited: true}, nil
	}
	sess.conn.Close()
	return lease.Released{Held: true, Awaited: true}, nil
}

func (s *sessionStore) Watch(ctx context.Context, id lease.HoldID) (lease.Watch, error) {
	return s.c.watch(id), nil
}

// close ends what is left after the engine has closed. It waits for that until ctx ends.
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

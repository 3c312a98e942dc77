package sqllock

import (
	"context"
	"database/sql"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// A waiter of an [Advisory], or of a [Row] in PostgreSQL, can wait in the server, see
// [WithBlockingWait]. The waiter's statement then ends when the server gives the waiter the lock.
// So a hand-over takes no request but the release. The server wakes one waiter, in order of
// arrival. One waiter of a process waits in the server, and the others wait behind it in the local
// queue.
//
// In MySQL and MariaDB the statement also ends after two seconds, and is sent again. These servers
// keep the place of a client that has gone until its statement ends.

// roomy reports whether the pool has room for a statement that waits. Half of the pool's
// connections are left to requests.
func (c *core) roomy() bool {
	s := c.db.Stats()
	return s.MaxOpenConnections == 0 || 2*s.InUse <= s.MaxOpenConnections
}

// lookAfter calls lose when the statement of a session no longer waits, but its answer does not
// come: the connection is dead, and the driver does not notice. It asks until stop is called.
func (c *core) lookAfter(session int64, lose func()) (stop func()) {
	ctx, cancel := context.WithCancel(c.open)
	c.jobs.Go(func() {
		for late := false; adapter.Sleep(ctx, quiet); {
			var waiting int
			switch err := c.query(ctx, c.statements["waiting"], []any{session}, &waiting); {
			case c.dialect.classify(err) == classes.Request: // the pool is closed
				lose()
				return
			case err != nil: // no answer says nothing
			case waiting > 0:
				late = false
			case late:
				lose()
				return
			default: // the answer may be on its way
				late = true
			}
		}
	})
	return cancel
}

// blockingStore is the [driver.Store] of an [Advisory] whose waiters wait in the server:
//
//	Enqueue of an acquisition that   does
//	is new                           tries the lock; if it is taken, begins the statement that waits
//	asks or waits                    nothing
//	has waited                       returns the hold, or the error, after which it is new
//	has a session with the lock      asks that session: the answer that told of it came too late
//
// The watch of an acquisition is told when its statement has ended. The hold counts from the time
// when the statement was sent. If a third of the lease is over by then, the client asks the session
// whether it still has the lock, and the hold counts from this question. If nobody asks for the
// outcome for the time of a lease, the outcome is discarded: the request was late, and its caller
// has gone.
type blockingStore struct{ *sessionStore }

var _ driver.Queue = blockingStore{}

// blocked is the place of an acquisition. Guarded by sessionStore.mu.
type blocked struct {
	ttl   time.Duration   // of the request
	ctx   context.Context // of the statement that waits
	end   context.CancelFunc
	waits bool      // the statement was begun
	sent  time.Time // by [driver.Now], the last time
	over  bool      // it has ended
	sess  *session  // which has the lock, or nil
	err   error

	unclaimed *time.Timer // when it is discarded
}

// Enqueue is part of [driver.Queue].
func (s blockingStore) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	b := s.blocked[req.HoldID]
	switch {
	case s.closed:
		s.mu.Unlock()
		return driver.Reply{}, errClosing
	case s.held[req.HoldID] != nil:
		s.mu.Unlock()
		held, err := s.Renew(ctx, []driver.HoldID{req.HoldID}, req.TTL)
		return driver.Reply{Held: held[0]}, err
	case b != nil && !b.over:
		s.mu.Unlock()
		return driver.Reply{}, nil
	case b == nil:
		b = &blocked{ttl: req.TTL}
		b.ctx, b.end = context.WithCancel(s.c.open)
		s.blocked[req.HoldID] = b
		s.mu.Unlock()
		return s.begin(ctx, req, b)
	}
	delete(s.blocked, req.HoldID)
	s.mu.Unlock()
	b.unclaimed.Stop()
	switch {
	case b.err != nil:
		return s.failure(b.err)
	case driver.Now().Sub(b.sent) > req.TTL/3:
		err := s.c.request(ctx, func(ctx context.Context) error {
			return s.alive(ctx, b.sess.conn, req.Name, b.sess.id)
		})
		if err != nil {
			discard(b.sess.conn)
			return s.failure(err)
		}
		return s.keep(b.sess, req.TTL)
	}
	reply, err := s.keep(b.sess, req.TTL)
	reply.Since = b.sent
	return reply, err
}

// begin tries the lock. If no statement waits then, the acquisition is new again.
func (s blockingStore) begin(ctx context.Context, req driver.Request, b *blocked) (driver.Reply, error) {
	reply, err := s.acquire(ctx, req, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !b.waits {
		b.end()
		if s.blocked[req.HoldID] == b {
			delete(s.blocked, req.HoldID)
		}
	}
	return reply, err
}

// Leave ends the statement of an acquisition, and the session that it may have got.
func (s blockingStore) Leave(ctx context.Context, id driver.HoldID) error {
	s.mu.Lock()
	b := s.blocked[id]
	s.mu.Unlock()
	s.abandon(b, id)
	return nil
}

// abandon ends b if it still is the place of an acquisition.
func (s *sessionStore) abandon(b *blocked, id driver.HoldID) {
	s.mu.Lock()
	there := b != nil && s.blocked[id] == b
	if there {
		delete(s.blocked, id)
	}
	s.mu.Unlock()
	if there {
		b.leave()
	}
}

// leave ends a statement that is removed from the store.
func (b *blocked) leave() {
	b.end()
	if b.unclaimed != nil {
		b.unclaimed.Stop()
	}
	if b.sess != nil {
		discard(b.sess.conn)
	}
}

// block begins the statement that waits, on the connection of a session whose number is own. It
// reports whether the statement has begun. If so, the statement uses the connection from then on.
func (s *sessionStore) block(b *blocked, id driver.HoldID, conn *sql.Conn, own int64) bool {
	if !s.c.roomy() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked[id] != b || s.held[id] != nil { // the acquisition has left, or another request has the lock
		return false
	}
	b.sent = driver.Now()
	b.waits = s.c.jobs.Go(func() { s.wait(b, id, conn, own) })
	return b.waits
}

func (s *sessionStore) wait(b *blocked, id driver.HoldID, conn *sql.Conn, own int64) {
	defer b.end()
	defer s.c.lookAfter(own, b.end)()
	var now, got int64
	var err error
	for {
		err = s.c.statements["wait"].query(b.ctx, conn, []any{s.key(id.Name), own}, &now, &got)
		if err != nil || got != 0 {
			break
		}
		s.mu.Lock()
		b.sent = driver.Now()
		s.mu.Unlock()
	}
	if err == nil && got < 0 {
		err = sessionsError(own, now)
	}
	s.mu.Lock()
	awaited := s.blocked[id] == b
	b.over, b.err = true, err
	if awaited {
		b.unclaimed = time.AfterFunc(b.ttl, func() { s.abandon(b, id) })
		if err == nil {
			b.sess = newSession(id, conn, own)
		}
	}
	s.mu.Unlock()
	if w := s.c.waiters.of(id); w != nil {
		w.onNotice()
	}
	if !awaited || err != nil {
		discard(conn)
	}
}

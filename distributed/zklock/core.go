package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// core is the part that all locks of a client share: the present session, and the loop that begins
// the next session.
type core struct {
	servers []string
	order   string        // the same servers, sorted
	timeout time.Duration // the session timeout to ask for
	acl     []zk.ACL
	auth    []credentials
	dialer  func(ctx context.Context, network, address string) (net.Conn, error)
	log     *slog.Logger
	onState func(State)

	life  context.Context // until close; its cause is then locks.ErrClosed
	end   context.CancelCauseFunc
	beats adapter.Bell // makes observe look at the state

	lasting atomic.Int64 // how many sessions have begun and are not known to be over, see session.onEnd

	mu     sync.Mutex
	sess   *session      // the present session, once it was connected
	failed error         // why the last session has ended, or the last attempt to connect has failed
	change chan struct{} // closed when sess changes
	term   time.Duration // the timeout of the last session
	jobs   adapter.Jobs  // each ends when life does
	stores []*store

	mine     sync.Map // path of an own node -> *node
	clients  string   // the directory of the clients' identities
	identity atomic.Pointer[string]
}

type credentials struct {
	scheme string
	secret []byte
}

// debugLog logs the messages of the ZooKeeper client. None of them contains credentials.
type debugLog struct{ log *slog.Logger }

func (d debugLog) Printf(format string, args ...any) {
	if d.log != nil {
		d.log.Debug("zookeeper: " + fmt.Sprintf(format, args...))
	}
}

// fail notes why an attempt to connect has failed.
func (c *core) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
}

// notConnected returns the error of a wait for a connection that ctx has ended.
func (c *core) notConnected(ctx context.Context) error {
	cause := context.Cause(ctx) // before c.mu: ctx may be a type of the program
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(cause, locks.ErrClosed):
		return locks.ErrClosed
	case errors.Is(c.failed, zk.ErrAuthFailed): // an earlier request may have been sent
		return driver.Mark(fmt.Errorf("%w: %v", errNotConnected, c.failed), driver.ErrLogin)
	case c.failed != nil:
		return fmt.Errorf("%w: %v", errNotConnected, c.failed) // c.failed may match the error of a context
	}
	return errNotConnected
}

// set replaces the session. If s is nil, failed says why.
func (c *core) set(s *session, failed error) {
	c.mu.Lock()
	c.sess, c.failed = s, failed
	if s != nil {
		c.term = s.term()
	}
	close(c.change)
	c.change = make(chan struct{})
	c.mu.Unlock()
	c.beats.Ring()
}

// run keeps one session after the other, until the client is closed.
func (c *core) run() {
	for c.life.Err() == nil {
		s, err := c.start()
		if err == nil {
			err = c.keep(s)
		}
		c.set(nil, err)
		if s != nil {
			c.drop(s, err)
		}
		if err != nil && !errors.Is(err, zk.ErrSessionExpired) {
			adapter.Sleep(c.life, 250*time.Millisecond)
		}
	}
}

// keep makes the leader confirm s six times in a session timeout, until s is over or the client is
// closed. It returns why s is over.
func (c *core) keep(s *session) error {
	defer c.disconnect(s)
	select {
	case <-s.ready:
		c.set(s, nil)
	case <-s.dead:
	case <-c.life.Done():
		s.end(locks.ErrClosed)
	}
	for {
		term := s.term()
		timer := time.NewTimer(max(term/6, time.Millisecond))
		select {
		case <-timer.C:
			if !s.connected() {
				continue
			}
			c.jobs.Go(func() {
				ctx, cancel := c.within(term)
				defer cancel()
				s.sync(ctx, "/")
			})
		case <-s.dead:
			timer.Stop()
			return s.over // set before dead was closed
		case <-c.life.Done():
			timer.Stop()
			s.end(locks.ErrClosed)
		}
	}
}

// disconnect closes s in the background, or before it returns if the client is closed. If a server
// can be reached, closing s deletes all its nodes.
func (c *core) disconnect(s *session) {
	last := func() *link {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.link
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l := last(); l != nil {
			l.hangUp()
		}
		s.conn.Close()
	}()
	wait := func() {
		<-done
		if l := last(); l != nil {
			l.Close()
		}
	}
	if c.life.Err() != nil || !c.jobs.Go(wait) {
		wait()
	}
}

// drop ends all holds and restarts all waits that depend on s.
func (c *core) drop(s *session, why error) {
	c.mu.Lock()
	stores := c.stores
	c.mu.Unlock()
	for _, st := range stores {
		st.drop(s, why)
	}
}

// session returns the present session when it is connected. It waits for a session until ctx ends.
func (c *core) session(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, change := c.sess, c.change
		c.mu.Unlock()
		if s != nil {
			if err := s.await(ctx); err == nil || ctx.Err() != nil {
				return s, err
			}
		} else if c.life.Err() != nil {
			return nil, locks.ErrClosed
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, c.notConnected(ctx)
		}
	}
}

// Term returns how long the present session lasts without an answer from the servers.
func (c *core) Term() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sess != nil {
		return c.sess.term()
	}
	return c.term
}

// within returns a context that ends after d, or with the client.
func (c *core) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(c.life, max(d, 10*time.Millisecond), errNoAnswer)
}

// close ends the session, and waits for the client's goroutines until ctx ends. It reports whether
// no session is left: then no node is left, and no late request can make one.
func (c *core) close(ctx context.Context) (ended bool) {
	c.end(locks.ErrClosed)
	c.jobs.Close(ctx)
	return c.lasting.Load() == 0
}

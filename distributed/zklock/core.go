package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
)

// core is what the stores of one client share: the session, and the one after it.
type core struct {
	servers []string
	order   string        // the same, sorted
	timeout time.Duration // asked for
	acl     []zk.ACL
	auth    []credentials
	log     *slog.Logger
	told    func(State)

	life  context.Context
	end   context.CancelFunc
	beats chan struct{} // the state may have changed

	mu       sync.Mutex
	sess     *session      // the present one, if it was up at least once
	failed   error         // why there is none, if that is for good or known
	change   chan struct{} // closed when sess or failed changes
	term     time.Duration // of the last session
	shut     bool
	wg       sync.WaitGroup // not added to when shut
	stores   []*store
	brief    context.Context // see patience
	briefEnd time.Time

	guards guards
}

type credentials struct {
	scheme string
	secret []byte
}

// quiet passes on what the ZooKeeper client has to say.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	if q.log != nil {
		q.log.Debug("zookeeper: " + fmt.Sprintf(format, args...))
	}
}

// spawn runs f in a goroutine for which close waits. f must end when c.life does.
func (c *core) spawn(f func()) { c.try(f) }

// try is spawn, and reports whether it did: close may have begun to wait.
func (c *core) try(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		c.wg.Go(f)
	}
	return !c.shut
}

func (c *core) pulse() {
	select {
	case c.beats <- struct{}{}:
	default:
	}
}

// set replaces the session. failed says why there is none.
func (c *core) set(s *session, failed error) {
	c.mu.Lock()
	c.sess, c.failed = s, failed
	if s != nil {
		c.term = s.term()
	}
	close(c.change)
	c.change = make(chan struct{})
	c.mu.Unlock()
	c.pulse()
}

// run has one session after the other, until the client is closed.
func (c *core) run() {
	for c.life.Err() == nil {
		s, err := c.start()
		if err == nil {
			err = c.live(s)
		}
		c.set(nil, err)
		if s != nil {
			c.drop(s, err)
		}
		if err != nil && !errors.Is(err, zk.ErrSessionExpired) {
			pause(c.life, 250*time.Millisecond)
		}
	}
}

// looks is how often in a session timeout it is looked whether requests are answered.
const looks = 24

// live looks after s until it is over or the client is closed, and returns why.
func (c *core) live(s *session) error {
	defer c.spawnClose(s)
	select {
	case <-s.ready:
		c.set(s, nil)
	case <-s.dead:
	case <-c.life.Done():
		s.end(locks.ErrClosed)
	}
	var asked time.Time // for a sign of life, the leader's
	for {
		term := s.term()
		timer := time.NewTimer(max(term/looks, time.Millisecond))
		select {
		case <-timer.C:
			now := time.Now()
			s.unblock(now.Add(term/looks - term/3))
			s.mu.Lock()
			quiet := s.up && now.Sub(s.led) >= term/4 && now.Sub(asked) >= term/4
			s.mu.Unlock()
			if quiet {
				asked = now
				c.spawn(func() {
					ctx, cancel := context.WithTimeout(c.life, s.term())
					defer cancel()
					s.sync(ctx, "/")
				})
			}
		case <-s.dead:
			timer.Stop()
			return s.over // set before dead was closed
		case <-c.life.Done():
			s.end(locks.ErrClosed)
		}
	}
}

// spawnClose closes s, with all of its nodes if the server can be reached.
func (c *core) spawnClose(s *session) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.conn.Close()
	}()
	wait := func() {
		<-done
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.wire != nil {
			s.wire.Close()
		}
	}
	if c.life.Err() != nil {
		wait()
	} else {
		c.spawn(wait)
	}
}

// drop has everybody lose what they hold by s.
func (c *core) drop(s *session, why error) {
	c.mu.Lock()
	stores := c.stores
	c.mu.Unlock()
	for _, st := range stores {
		st.drop(s, why)
	}
}

// session returns the present session when it is connected. It waits for one until ctx ends.
func (c *core) session(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, failed, change := c.sess, c.failed, c.change
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
			if failed != nil {
				return nil, fmt.Errorf("%w: %w", notConnected(ctx), failed)
			}
			return nil, notConnected(ctx)
		}
	}
}

// Term is for how long the present session lasts without a sign of life.
func (c *core) Term() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sess != nil {
		return c.sess.term()
	}
	return c.term
}

// patience returns a context for what may take half of a session timeout from now, or an eighth more: one for all of such a
// time, for a timer costs more than most requests do.
func (c *core) patience() context.Context {
	d := max(c.Term()/2, 10*time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := time.Until(c.briefEnd); left < d || left > d+d/4 {
		c.briefEnd = time.Now().Add(d + d/4)
		ctx, cancel := context.WithDeadlineCause(c.life, c.briefEnd, errTimeout)
		context.AfterFunc(ctx, cancel) // at its time, or with the client
		c.brief = ctx
	}
	return c.brief
}

// close ends the session, and waits for everybody at work here until ctx ends.
func (c *core) close(ctx context.Context) {
	c.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.mu.Lock()
		c.shut = true
		c.mu.Unlock()
		c.wg.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

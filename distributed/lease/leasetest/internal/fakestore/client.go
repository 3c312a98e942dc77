package fakestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// Kind says which optional features a Store has.
type Kind string

// The kinds of stores.
const (
	// Polled gives no notices.
	Polled Kind = "polled"
	// Watched wakes all waiters with a release.
	Watched Kind = "watched"
	// Queued is a Queue, in order of arrival, and a Breaker.
	Queued Kind = "queued"
	// Tied is a Session, a LossNotifier and a Breaker.
	Tied Kind = "tied"
	// Full has every optional interface.
	Full Kind = "full"
	// Reading is Watched, and its holds are shared with each other.
	Reading Kind = "reading"
	// Permits is Watched and an Inspector, and a lock is a semaphore of as many permits as a
	// request says.
	Permits Kind = "permits"
)

// Dial connects to the server.
type Dial func(ctx context.Context) (net.Conn, error)

// client is one process. It has all methods: its kind says which of them are to be seen.
type client struct {
	server *Server
	dial   Dial
	id     string // from Identify
	number int
	term   time.Duration
	shared bool
	queue  bool
	weighs bool // the requests
	mute   bool // has no watches
	tokens uint64
	told   atomic.Pointer[func(driver.HoldID, error)]
	reply  atomic.Pointer[driver.Reply] // the last one, see RepliesMix
	closed context.Context
	end    context.CancelFunc
	jobs   sync.WaitGroup

	mu      sync.Mutex
	idle    []net.Conn
	session *session // nil unless the kind has one
	since   time.Time
	holds   []driver.HoldID   // of the session
	watches map[string]*watch // the first of each acquisition, for WatchAgain
}

// Client returns the Store of a new client. Its requests go over the network if dial is not nil.
// A client with a session keeps it alive until end is called, or the network fails. A session lasts
// for term without a sign of life.
func (s *Server) Client(kind Kind, dial Dial, term time.Duration) (store driver.Store, end func()) {
	c := &client{server: s, dial: dial, term: term}
	s.mu.Lock()
	s.clients++
	c.number = s.clients
	s.mu.Unlock()
	c.closed, c.end = context.WithCancel(context.Background())
	c.weighs = kind == Permits
	c.shared, c.mute, c.queue = kind == Reading, kind == Polled, kind == Queued || kind == Full
	if kind == Tied || kind == Full {
		c.renewSession(nil)
		c.jobs.Go(c.keepAlive)
	}
	switch kind {
	case Queued:
		store = struct {
			driver.Store
			driver.Queue
			driver.Breaker
		}{c, c, c}
	case Tied:
		store = struct {
			driver.Store
			driver.Session
			driver.LossNotifier
			driver.Breaker
		}{c, c, c, c}
	case Permits:
		store = struct {
			driver.Store
			driver.Inspector
		}{c, c}
	case Full:
		store = c
	default:
		store = struct{ driver.Store }{c}
	}
	return store, c.close
}

// close ends the client, but not what it has in the server.
func (c *client) close() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.jobs.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		conn.Close()
	}
	c.idle = nil
}

// ask has the server carry out f, and returns what f does. f may be carried out at any time after
// an error.
func ask[T any](ctx context.Context, c *client, f func() (T, error)) (none T, err error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	request := func() {
		value, err := f()
		answers <- answer{value, err}
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if c.dial == nil {
		request()
	} else if err := c.send(ctx, request); err != nil {
		return none, err
	}
	a := <-answers
	return a.value, a.err
}

// send sends a request over the network, and waits until the server has carried it out.
func (c *client) send(ctx context.Context, request func()) error {
	if c.server.flaw == IgnoresContext {
		ctx = c.closed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	conn, err := c.connection(ctx)
	if err != nil {
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	s := c.server
	s.mu.Lock()
	s.serial++
	key := s.serial
	s.requests[key] = request
	s.mu.Unlock()
	number := binary.BigEndian.AppendUint64(nil, key)
	if _, err = conn.Write(number); err == nil {
		_, err = io.ReadFull(conn, number)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		err = fmt.Errorf("fakestore: no answer: %w", err)
		if s.flaw == RefusedAfterAll {
			err = driver.Mark(err, driver.ErrRefused)
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Err() != nil {
		return conn.Close()
	}
	c.idle = append(c.idle, conn)
	return nil
}

func (c *client) connection(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		conn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return conn, nil
	}
	c.mu.Unlock()
	return c.dial(ctx)
}

// keepAlive keeps the session alive, and tells of losses.
func (c *client) keepAlive() {
	for {
		ctx, cancel := context.WithTimeout(c.closed, c.term/2)
		x, _ := c.current()
		sent := driver.Now()
		losses, err := ask(ctx, c, func() ([]driver.HoldID, error) {
			s := c.server
			s.mu.Lock()
			defer s.mu.Unlock()
			losses := x.losses
			x.losses = nil
			return losses, s.alive(x)
		})
		cancel()
		switch {
		case err == nil:
			c.mu.Lock()
			c.since = sent
			c.mu.Unlock()
			c.lose(losses)
		case errors.Is(err, errEnded):
			c.renewSession(x)
		}
		pause := min(c.term/10, 100*time.Millisecond)
		if c.term > 5*time.Second { // the next losses do not wait for it
			pause = c.term / 10
		}
		select {
		case <-time.After(pause):
		case <-x.alarm:
		case <-c.closed.Done():
			return
		}
	}
}

// current returns the session, and since when the server counts it.
func (c *client) current() (*session, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.since
}

// renewSession begins a session in place of an ended session, whose holds are lost.
func (c *client) renewSession(old *session) {
	c.mu.Lock()
	if c.session != old {
		c.mu.Unlock()
		return
	}
	s := c.server
	c.since = driver.Now()
	s.mu.Lock()
	c.session = &session{
		term: c.term, ends: s.now(nil) + c.term, restarts: s.restarts, alarm: make(chan struct{}, 1),
	}
	s.mu.Unlock()
	lost := c.holds
	c.holds = nil
	c.mu.Unlock()
	c.lose(lost)
}

func (c *client) lose(ids []driver.HoldID) {
	if told := c.told.Load(); told != nil && c.server.flaw != LossMute {
		for _, id := range ids {
			(*told)(id, errors.New("fakestore: the hold has ended"))
		}
	}
}

// within sends a request that belongs to the session, if there is one.
func (c *client) within(
	ctx context.Context, name, acquisition string, f func(x *session) (driver.Reply, error)) (driver.Reply, error) {
	for again := false; ; again = true {
		x, _ := c.current()
		reply, err := ask(ctx, c, func() (driver.Reply, error) { return f(x) })
		if errors.Is(err, errEnded) && !again {
			c.renewSession(x)
			continue
		}
		if err != nil || !reply.Held || x == nil {
			return reply, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if x != c.session {
			return driver.Reply{}, errEnded
		}
		c.holds = append(c.holds, driver.HoldID{Name: name, Acquisition: acquisition})
		reply.Since = c.since
		return reply, nil
	}
}

func (c *client) take(ctx context.Context, req driver.Request, waits bool) (driver.Reply, error) {
	s := c.server
	return c.within(ctx, req.Name, req.Acquisition, func(x *session) (driver.Reply, error) {
		if s.flaw == AcquireTwice {
			time.AfterFunc(10*time.Millisecond, func() { _, _ = s.take(c, x, req, waits) })
		}
		return s.take(c, x, req, waits)
	})
}

func (c *client) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	reply, err := c.take(ctx, req, false)
	switch {
	case c.server.flaw == FailureRefuses:
		return reply, nil
	case c.server.flaw == RefusalFrees && err == nil && !reply.Held:
		time.Sleep(time.Millisecond)
		_, _ = c.Release(ctx, req.HoldID)
	case c.server.flaw == RepliesMix && err == nil:
		c.reply.Store(&reply)
		time.Sleep(time.Millisecond)
		return *c.reply.Load(), nil
	}
	return reply, err
}

func (c *client) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	reply, err := c.take(ctx, req, true)
	if err != nil && c.server.flaw == RefusedEnqueue {
		err = driver.Mark(err, driver.ErrRefused)
	}
	return reply, err
}

func (c *client) Leave(ctx context.Context, id driver.HoldID) error {
	_, err := ask(ctx, c, func() (struct{}, error) { return struct{}{}, c.server.leave(c, id.Name, id.Acquisition) })
	return err
}

func (c *client) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	reply, err := c.within(ctx, req.Name, req.Acquisition, func(*session) (driver.Reply, error) {
		return c.server.lookup(c, req.Name, req.Acquisition)
	})
	if c.server.flaw == FailureFindsNot {
		err = nil
	}
	return reply, err
}

func (c *client) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	x, _ := c.current()
	renewed, err := ask(ctx, c, func() ([]bool, error) { return c.server.renew(c, x, holds, d) })
	if err != nil && c.server.flaw == FailureLoses {
		return make([]bool, len(holds)), nil
	}
	return renewed, err
}

func (c *client) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	r, err := ask(ctx, c, func() (driver.Released, error) { return c.server.release(c, id.Name, id.Acquisition) })
	switch {
	case err != nil && c.server.flaw == RefusedRelease:
		err = driver.Mark(err, driver.ErrRefused)
	case c.server.flaw == FailureReleases:
		err = nil
	}
	if err == nil {
		c.forget(id.Name, id.Acquisition)
	}
	return r, err
}

// ReleaseAll implements [driver.BatchReleaser].
func (c *client) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	done := make([]bool, len(ids))
	for i, id := range ids {
		switch flaw := c.server.flaw; {
		case flaw == ReleaseAllStops && i > 1:
		case flaw == ReleaseAllFrees:
			if _, err := ask(ctx, c, func() (bool, error) { return c.server.breaks(c, id.Name) }); err != nil {
				return done, err
			}
		default:
			if _, err := c.Release(ctx, id); err != nil {
				return done, err
			}
		}
		done[i] = true
	}
	return done, nil
}

func (c *client) forget(name, acquisition string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := driver.HoldID{Name: name, Acquisition: acquisition}
	c.holds = slices.DeleteFunc(c.holds, func(other driver.HoldID) bool { return other == id })
}

// Term implements [driver.Session].
func (c *client) Term() time.Duration {
	if c.server.flaw == LongTerm {
		return 2 * c.term
	}
	return c.term
}

// Lost implements [driver.Session]. The hold may last as long as the session goes on.
func (c *client) Lost(id driver.HoldID) {
	if c.server.flaw == SessionKeeps {
		return
	}
	x, _ := c.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Err() != nil {
		return
	}
	c.jobs.Go(func() {
		for c.closed.Err() == nil {
			if now, _ := c.current(); now != x {
				return
			}
			if _, err := c.Release(c.closed, id); err == nil {
				return
			}
			select {
			case <-time.After(c.term / 20):
			case <-c.closed.Done():
			}
		}
	})
}

// NotifyLoss implements [driver.LossNotifier].
func (c *client) NotifyLoss(lost func(id driver.HoldID, cause error)) { c.told.Store(&lost) }

func (c *client) Break(ctx context.Context, name string) (bool, error) {
	return ask(ctx, c, func() (bool, error) { return c.server.breaks(c, name) })
}

// Identify implements [driver.Inspector].
func (c *client) Identify(client, identity string) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.id = client
	c.server.identities[client] = identity
}

func (c *client) Inspect(ctx context.Context, name string) (driver.State, error) {
	return ask(ctx, c, func() (driver.State, error) { return c.server.inspect(c, name) })
}

// Announce implements [driver.Announcer]. The server has the identity already.
func (c *client) Announce(ctx context.Context, _ time.Duration) error {
	_, err := ask(ctx, c, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

func (c *client) Contended(ctx context.Context, name string) (bool, error) {
	return ask(ctx, c, func() (bool, error) { return c.server.contended(c, name) })
}

// watch is one waiter's notifications.
type watch struct {
	client      *client
	name        string
	acquisition string
	c           chan struct{}
	closed      bool
	shut        sync.Once // see WatchCloses
}

func (c *client) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	if c.mute {
		return nil, ctx.Err()
	}
	w := &watch{client: c, name: id.Name, acquisition: id.Acquisition, c: make(chan struct{}, 1)}
	_, err := ask(ctx, c, func() (struct{}, error) {
		if c.server.flaw == WatchLate {
			time.AfterFunc(50*time.Millisecond, func() { _ = w.begin() })
			return struct{}{}, nil
		}
		return struct{}{}, w.begin()
	})
	if err != nil {
		w.Close()
		return nil, err
	}
	if c.server.flaw == WatchAgain {
		return c.firstWatch(w), nil
	}
	return w, nil
}

// firstWatch returns the first watch of w's acquisition, which may be closed.
func (c *client) firstWatch(w *watch) *watch {
	c.mu.Lock()
	first := c.watches[w.acquisition]
	if c.watches == nil {
		c.watches = make(map[string]*watch)
	}
	if first == nil {
		c.watches[w.acquisition] = w
	}
	c.mu.Unlock()
	if first == nil {
		return w
	}
	w.Close()
	return first
}

func (w *watch) begin() error {
	s := w.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(w.client, w.name)
	if err == nil && !w.closed {
		l.watches = append(l.watches, w)
	}
	return err
}

func (w *watch) C() <-chan struct{} { return w.c }

// Close ends the watch, also if it comes late to the server.
func (w *watch) Close() {
	s := w.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	w.closed = true
	if l := s.locks[s.key(w.name)]; l != nil {
		l.watches = slices.DeleteFunc(l.watches, func(other *watch) bool { return other == w })
	}
	if s.flaw == WatchesEnd {
		for _, l := range s.locks {
			l.watches = slices.DeleteFunc(l.watches, func(other *watch) bool { return other.client == w.client })
		}
	}
}

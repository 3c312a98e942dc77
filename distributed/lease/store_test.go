package lease_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

var errNetwork = errors.New("network down")

// server is a store of locks in memory. Its clock is the clock of the test.
type server struct {
	mu      sync.Mutex
	locks   map[string]*record
	token   uint64
	watches map[*watch]struct{}
	calls   map[string]int

	identities map[string]string // by client
	asked      map[string]string // who was refused last, by lock
}

type record struct {
	acquisition string
	holds       int
	expires     time.Time
	token       uint64
}

func newServer() *server {
	return &server{
		locks: make(map[string]*record), watches: make(map[*watch]struct{}), calls: make(map[string]int),
		identities: make(map[string]string), asked: make(map[string]string),
	}
}

// live returns the record of a lock that is held. s.mu is held.
func (s *server) live(name string) *record {
	r := s.locks[name]
	if r != nil && !time.Now().Before(r.expires) {
		delete(s.locks, name)
		return nil
	}
	return r
}

func (s *server) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *server) holder(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.live(name); r != nil {
		return r.acquisition
	}
	return ""
}

// evict frees a lock behind its holder's back.
func (s *server) evict(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locks, name)
	s.notify(name)
}

// notify tells the watchers of name, and returns how many there are. s.mu is held.
func (s *server) notify(name string) (n int) {
	for w := range s.watches {
		if w.name == name {
			n++
			select {
			case w.c <- struct{}{}:
			default:
			}
		}
	}
	return n
}

// client is a connection to a server, that can be told to fail.
type client struct {
	s *server

	mu        sync.Mutex
	down      bool           // requests don't reach the server
	deaf      bool           // replies don't come back
	dropReply map[string]int // of how many requests of a kind the reply is lost
	delay     map[string]time.Duration
	mute      bool // notifications don't come
}

var _ driver.Store = (*client)(nil)

func (s *server) connect() *client {
	return &client{s: s, dropReply: make(map[string]int), delay: make(map[string]time.Duration)}
}

func (c *client) set(f func(c *client)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// call carries f out on the server, if the request gets there, and reports whether the reply
// comes back.
func (c *client) call(ctx context.Context, kind string, f func()) error {
	c.mu.Lock()
	down, deaf, delay := c.down, c.deaf, c.delay[kind]
	if c.dropReply[kind] > 0 {
		c.dropReply[kind]--
		deaf = true
	}
	c.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay / 2):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !down {
		c.s.mu.Lock()
		c.s.calls[kind]++
		f()
		c.s.mu.Unlock()
	}
	if delay > 0 {
		select {
		case <-time.After(delay / 2):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if down || deaf {
		select {
		case <-time.After(100 * time.Millisecond): // the client's own time-out
		case <-ctx.Done():
		}
		return errNetwork
	}
	return nil
}

func (c *client) Acquire(ctx context.Context, req driver.Request) (r driver.Reply, err error) {
	err = c.call(ctx, "acquire", func() {
		now := time.Now()
		switch rec := c.s.live(req.Name); {
		case rec == nil:
			c.s.token++
			c.s.locks[req.Name] = &record{req.Acquisition, 1, now.Add(req.TTL), c.s.token}
			r = driver.Reply{Held: true, Token: c.s.token}
		case rec.acquisition == req.Acquisition:
			rec.holds++
			rec.expires = now.Add(req.TTL)
			r = driver.Reply{Held: true, Token: rec.token}
		default:
			c.s.asked[req.Name] = req.Acquisition
			r = driver.Reply{Wait: rec.expires.Sub(now)}
		}
	})
	return r, err
}

func (c *client) Lookup(ctx context.Context, req driver.Request) (r driver.Reply, err error) {
	err = c.call(ctx, "recall", func() {
		if rec := c.s.live(req.Name); rec != nil && rec.acquisition == req.Acquisition {
			r = driver.Reply{Held: true, Token: rec.token}
		}
	})
	return r, err
}

func (c *client) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) (ok []bool, err error) {
	err = c.call(ctx, "renew", func() {
		for _, h := range holds {
			rec := c.s.live(h.Name)
			mine := rec != nil && rec.acquisition == h.Acquisition
			if mine {
				rec.expires = time.Now().Add(d)
			}
			ok = append(ok, mine)
		}
	})
	if err != nil {
		return nil, err
	}
	return ok, nil
}

func (c *client) Release(ctx context.Context, id driver.HoldID) (r driver.Released, err error) {
	err = c.call(ctx, "release", func() {
		if rec := c.s.live(id.Name); rec != nil && rec.acquisition == id.Acquisition {
			delete(c.s.locks, id.Name)
			r = driver.Released{Held: true, Awaited: c.s.notify(id.Name) > 0}
		}
	})
	return r, err
}

type watch struct {
	s    *server
	name string
	c    chan struct{}
}

func (c *client) Watch(_ context.Context, id driver.HoldID) (driver.Watch, error) {
	w := &watch{c.s, id.Name, make(chan struct{}, 1)}
	c.mu.Lock()
	mute := c.mute
	c.mu.Unlock()
	if !mute {
		c.s.mu.Lock()
		c.s.watches[w] = struct{}{}
		c.s.mu.Unlock()
	}
	return w, nil
}

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) Close() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.watches, w)
}

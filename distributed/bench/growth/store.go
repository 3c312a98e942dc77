package main

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/open"
)

// store opens clients of one store.
type store struct {
	name string
	open func(ctx context.Context) (*client, error)
	port string // of the server, or ""
}

// client is the part of a store that the program uses.
type client struct {
	locks.Provider
	names func(ctx context.Context) ([]string, error) // nil if the store has no list
	close func(ctx context.Context) error
	calls func() (messages, bytes int64) // so far
}

// newStore returns the store at a URL.
func newStore(at string, ttl time.Duration) (*store, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	s := &store{name: u.Scheme, port: u.Port()}
	switch u.Scheme {
	case "fake":
		server := &fakeServer{held: make(map[string]string), watches: make(map[string]map[string]fakeWatch)}
		s.open = func(context.Context) (*client, error) {
			f := &fake{fakeServer: server}
			c, err := lease.New(f, lease.WithTTL(ttl))
			if err != nil {
				return nil, err
			}
			return &client{Provider: c, close: c.Close, calls: f.calls}, nil
		}
	case "mem": // all clients are one, since two of them share no locks
		one := sync.OnceValues(func() (*open.Client, error) { return open.URL(context.Background(), at) })
		none := func() (messages, bytes int64) { return 0, 0 }
		s.open = func(context.Context) (*client, error) {
			c, err := one()
			return &client{Provider: c, close: func(context.Context) error { return nil }, calls: none}, err
		}
	default:
		s.open = func(ctx context.Context) (*client, error) { return openBehindProxy(ctx, *u, ttl) }
	}
	return s, nil
}

// openBehindProxy opens a client whose messages are counted.
func openBehindProxy(ctx context.Context, u url.URL, ttl time.Duration) (*client, error) {
	p, err := newProxy(u.Host)
	if err != nil {
		return nil, err
	}
	u.Host = p.addr()
	c, err := open.URL(ctx, u.String(), open.WithTTL(ttl))
	if err != nil {
		p.close()
		return nil, err
	}
	return &client{
		Provider: c,
		names:    func(ctx context.Context) ([]string, error) { return c.Names(ctx, prefix+"*") },
		calls:    p.calls,
		close: func(ctx context.Context) error {
			defer p.close()
			return c.Close(ctx)
		},
	}, nil
}

// fakeServer is the part that the clients of fake: share.
type fakeServer struct {
	mu      sync.Mutex
	held    map[string]string               // acquisitions, by the names of locks
	watches map[string]map[string]fakeWatch // the same, and then by acquisition
}

// fake is a [driver.Store] in the memory of this process. Its leases end at the clients alone. Of
// the waiters of a lock, a release wakes all.
type fake struct {
	*fakeServer
	requests int64 // of this client; guarded by mu
}

var _ driver.BatchReleaser = (*fake)(nil)

// begin is the begin of each request. The caller unlocks mu.
func (f *fake) begin() {
	f.mu.Lock()
	f.requests++
}

func (f *fake) calls() (messages, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests, 0
}

// Acquire is part of [driver.Store].
func (f *fake) Acquire(_ context.Context, req driver.Request) (driver.Reply, error) {
	f.begin()
	defer f.mu.Unlock()
	if by, ok := f.held[req.Name]; ok && by != req.Acquisition {
		return driver.Reply{}, nil
	}
	f.held[req.Name] = req.Acquisition
	return driver.Reply{Held: true}, nil
}

// Lookup is part of [driver.Store].
func (f *fake) Lookup(_ context.Context, req driver.Request) (driver.Reply, error) {
	f.begin()
	defer f.mu.Unlock()
	return driver.Reply{Held: f.held[req.Name] == req.Acquisition}, nil
}

// Renew is part of [driver.Store].
func (f *fake) Renew(_ context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
	f.begin()
	defer f.mu.Unlock()
	held := make([]bool, len(holds))
	for i, id := range holds {
		held[i] = f.held[id.Name] == id.Acquisition
	}
	return held, nil
}

// Release is part of [driver.Store].
func (f *fake) Release(_ context.Context, id driver.HoldID) (driver.Released, error) {
	f.begin()
	defer f.mu.Unlock()
	return driver.Released{Held: f.free(id)}, nil
}

// ReleaseAll is part of [driver.BatchReleaser].
func (f *fake) ReleaseAll(_ context.Context, ids []driver.HoldID) ([]bool, error) {
	f.begin()
	defer f.mu.Unlock()
	done := make([]bool, len(ids))
	for i, id := range ids {
		f.free(id)
		done[i] = true
	}
	return done, nil
}

// free frees the lock if id holds it, and wakes its waiters. f.mu is held.
func (f *fakeServer) free(id driver.HoldID) bool {
	if f.held[id.Name] != id.Acquisition {
		return false
	}
	delete(f.held, id.Name)
	for _, w := range f.watches[id.Name] {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
	return true
}

// Watch is part of [driver.Store].
func (f *fake) Watch(_ context.Context, id driver.HoldID) (driver.Watch, error) {
	f.begin()
	defer f.mu.Unlock()
	w := fakeWatch{f.fakeServer, id, make(chan struct{}, 1)}
	if f.watches[id.Name] == nil {
		f.watches[id.Name] = make(map[string]fakeWatch)
	}
	f.watches[id.Name][id.Acquisition] = w
	return w, nil
}

// fakeWatch is a [driver.Watch].
type fakeWatch struct {
	f  *fakeServer
	id driver.HoldID
	c  chan struct{}
}

// C is part of [driver.Watch].
func (w fakeWatch) C() <-chan struct{} { return w.c }

// Close is part of [driver.Watch].
func (w fakeWatch) Close() {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	delete(w.f.watches[w.id.Name], w.id.Acquisition)
	if len(w.f.watches[w.id.Name]) == 0 {
		delete(w.f.watches, w.id.Name)
	}
}

package lease

import (
	"context"
	"sync"

	"github.com/jucgo/locks"
)

// Group is the Clients of an adapter that has several kinds of lock, one Client for each kind
// K. Its zero value is ready to use. It must not be copied. It is safe for concurrent use.
type Group[K comparable] struct {
	mu      sync.Mutex
	clients map[K]*Client
	closed  bool
}

// Client returns the Client of kind, which open makes at first. It returns [locks.ErrClosed] if
// the Group is closed and has no Client of this kind. It also returns open's error.
func (g *Group[K]) Client(kind K, open func() (*Client, error)) (*Client, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.clients[kind]; c != nil {
		return c, nil
	}
	if g.closed {
		return nil, locks.ErrClosed
	}
	c, err := open()
	if err != nil {
		return nil, err
	}
	if g.clients == nil {
		g.clients = make(map[K]*Client)
	}
	g.clients[kind] = c
	return c, nil
}

// Close closes all Clients at once, see [Client.Close]. All holders have found their holds lost
// before the first lock is released. The error counts the locks of all Clients. Close reports
// whether it was the first call: only the first call does anything.
func (g *Group[K]) Close(ctx context.Context) (first bool, err error) {
	g.mu.Lock()
	first = !g.closed
	g.closed = true
	clients := g.clients
	g.mu.Unlock()
	if !first {
		return false, nil
	}
	var ends []*closing
	for _, c := range clients {
		if e := c.beginClose(); e != nil {
			ends = append(ends, e)
		}
	}
	results := make(chan *unreleased, len(ends))
	for _, e := range ends {
		go func() { results <- e.finish(ctx) }()
	}
	var all unreleased
	for range ends {
		all.add(<-results)
	}
	if all.n > 0 {
		return true, &all
	}
	return true, nil
}

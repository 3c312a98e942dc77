package driver

import (
	"cmp"
	"context"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/internal/closing"
)

// Group is the Clients of an adapter that has several kinds of lock, one Client for each kind
// K. C is *lease.Client. The zero value of a Group is ready to use. It must not be copied. It is
// safe for concurrent use.
type Group[K comparable, C interface{ Close(context.Context) error }] struct {
	mu      sync.Mutex
	clients map[K]C
	closed  bool
}

// Client returns the Client of kind, which open makes at first. It returns [locks.ErrClosed] if the
// Group was closed without a Client of this kind. It also returns open's error.
func (g *Group[K, C]) Client(kind K, open func() (C, error)) (none C, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c, ok := g.clients[kind]; ok {
		return c, nil
	}
	if g.closed {
		return none, locks.ErrClosed
	}
	c, err := open()
	if err != nil {
		return none, err
	}
	if g.clients == nil {
		g.clients = make(map[K]C)
	}
	g.clients[kind] = c
	return c, nil
}

// Close closes all Clients at once, see lease.Client.Close. All holders have found their holds lost
// before the first lock is released: one request to the store may end the holds of several Clients.
// The error counts the locks of all Clients, as the error of one Client does. Close reports whether
// it was the first call: only the first call does anything.
func (g *Group[K, C]) Close(ctx context.Context) (first bool, err error) {
	g.mu.Lock()
	first = !g.closed
	g.closed = true
	clients := g.clients
	g.mu.Unlock()
	if !first {
		return false, nil
	}
	all := closing.New(len(clients))
	failures := make(chan error, len(clients))
	for _, c := range clients {
		m, ctx := all.Member(ctx)
		go func() {
			defer m.Leave() // a C that is no lease.Client has one step only
			failures <- c.Close(ctx)
		}()
	}
	for range clients {
		err = cmp.Or(err, <-failures)
	}
	return true, cmp.Or(all.Err(), err)
}

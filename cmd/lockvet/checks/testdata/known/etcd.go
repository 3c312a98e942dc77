package known

import (
	"context"
	"errors"
	"sync"
)

var errClosed = errors.New("closed")

// Etcd 5509: a return with an error leaves the lock of the client held.

type client struct {
	mu     sync.RWMutex
	cancel context.CancelFunc
}

type remote struct {
	client *client
	mu     sync.Mutex
	fresh  bool
}

// acquire returns with the lock of the client, if it returns no error.
func (r *remote) acquire(ctx context.Context) error {
	for {
		r.client.mu.RLock()
		closed := r.client.cancel == nil
		r.mu.Lock()
		fresh := r.fresh
		r.mu.Unlock()
		if fresh {
			return nil
		}
		if closed {
			return errClosed // found: missingunlock
		}
		r.client.mu.RUnlock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (r *remote) release() { r.client.mu.RUnlock() }

// Etcd 6708: Sync calls back into the client through an interface. Not found: no call names the
// method that acquires the lock.

type doer interface{ do(context.Context) }

type cluster struct {
	sync.RWMutex
	byLeader bool
}

type members struct{ client doer }

func (m *members) leader(ctx context.Context) { m.client.do(ctx) }

func (c *cluster) setEndpoints(ctx context.Context) {
	if c.byLeader {
		m := &members{client: c}
		m.leader(ctx)
	}
}

func (c *cluster) do(context.Context) {
	c.RLock()
	defer c.RUnlock()
}

func (c *cluster) sync(ctx context.Context) {
	c.Lock()
	defer c.Unlock()
	c.setEndpoints(ctx)
}

// Etcd 10492: a renewal calls a function that acquires the lock again. The function is the value of
// a field.

type lessor struct {
	mu         sync.RWMutex
	checkpoint func(context.Context)
	points     int
}

func (le *lessor) setPoint(context.Context) {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.points++
}

func newLessor() *lessor {
	le := &lessor{}
	le.checkpoint = le.setPoint
	return le
}

func (le *lessor) renew(ctx context.Context) {
	le.mu.Lock()
	unlock := func() { le.mu.Unlock() }
	defer func() { unlock() }()
	if le.checkpoint != nil {
		le.checkpoint(ctx) // found: doublelock
	}
}

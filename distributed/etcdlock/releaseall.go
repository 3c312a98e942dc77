package etcdlock

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

var _ driver.BatchReleaser = (*store)(nil)

// ReleaseAll revokes the sessions of the holds. Revoking a session takes one request, however
// many keys it has. All holds of all kinds have ended here before ReleaseAll is called.
func (s *store) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	c := s.c
	done := make([]bool, len(ids))
	errs := make(map[*session]error)
	var failed error
	for i, id := range ids {
		c.finish(id.Acquisition)
		p := c.find(id.Name, id.Acquisition)
		if p != nil && p.master != nil {
			p = p.master
		}
		if p == nil || p.session == nil {
			done[i] = true // it has no key
			continue
		}
		err, known := errs[p.session]
		if !known {
			err = p.session.close(ctx)
			errs[p.session] = err
		}
		if done[i] = err == nil; err != nil {
			failed = err
		}
	}
	return done, failed
}

// revocation is the request that ends a session whose client is closed. Several calls of
// ReleaseAll wait for it.
type revocation struct {
	done chan struct{} // closed when it has come to an end
	err  error
}

// close revokes the lease of s, and waits for the answer until ctx ends.
func (s *session) close(ctx context.Context) error {
	c := s.c
	c.mu.Lock()
	r := s.closing
	if r == nil {
		r = &revocation{done: make(chan struct{})}
		s.closing = r
		s.retire()
		if !c.jobs.Go(func() { s.carryOut(r) }) {
			r.err = locks.ErrClosed
			close(r.done)
		}
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// carryOut revokes the lease of s for r.
func (s *session) carryOut(r *revocation) {
	c := s.c
	defer close(r.done)
	err := c.persist(c.life, c.lease, func(ctx context.Context) error { return c.revoke(ctx, s) })
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		r.err = storeError(err)
		c.mu.Lock()
		s.closing = nil // another call tries again
		c.mu.Unlock()
		return
	}
	s.die()
}

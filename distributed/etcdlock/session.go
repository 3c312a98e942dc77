package etcdlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// session is an etcd lease, and the keys under it. All new keys of a client are put under its
// present session, core.present. An earlier session goes on for the keys that it has.
//
//	open   holds or waiters: kept alive, every key confirmed
//	       none: ends when it is due to be kept alive, or at once if it is not present
//	over   its time is over, the server lacks the lease, or nothing needs it: revoked, and its
//	       places are dead
//
// A request to put or delete a key may get no answer, and may be carried out at any later time. So
// the session of that key is not the present session any more: it is revoked as soon as no other
// key needs it. Until then the client deletes the key whenever it keeps the session alive, and does
// not use the key again.
//
// Other keys are used again, once they are deleted. Each additional key would make acquisitions
// slower until the server's history is compacted, because reads of the queue pass over it.
//
// The fields are guarded by core.mu.
type session struct {
	c      *core
	id     clientv3.LeaseID
	life   context.Context // until it is over
	end    context.CancelFunc
	since  time.Time         // when the last answered request was sent that began the lease's time, by driver.Now
	places map[string]*place // by key

	closing *revocation // that ends it with its client, or nil
}

// opening is a session that is being opened. Several acquisitions may wait for it.
type opening struct {
	done chan struct{} // closed when it has come to an end
	err  error
}

// join gives p a key under the present session. Without a present session, or if much of its time
// is over, join begins a session.
func (c *core) join(ctx context.Context, p *place) error {
	for {
		c.mu.Lock()
		if s := c.present; s != nil && driver.Now().Sub(s.since) < c.lease/2 {
			defer c.mu.Unlock()
			if c.finished(p.id.Acquisition) {
				return errLeft
			}
			p.session, p.key = s, s.free(fmt.Sprintf("%s/%s%x", p.id.Name, p.st.kind.own, s.id))
			s.places[p.key] = p
			c.places[p.id.Acquisition] = p
			return nil
		}
		o := c.opening
		begun := true
		if o == nil {
			o = &opening{done: make(chan struct{})}
			if begun = c.jobs.Go(func() { c.open(o) }); begun {
				c.opening = o
			}
		}
		c.mu.Unlock()
		if !begun {
			return locks.ErrClosed
		}
		select {
		case <-o.done:
			if o.err != nil {
				return o.err
			}
		case <-ctx.Done():
			return driver.Mark(fmt.Errorf("no etcd lease: %w", ctx.Err()), driver.ErrRefused)
		}
	}
}

// free returns the first key that no place has: key itself, as in etcd's own mutex, or key with a
// number at its end. c.mu is held.
func (s *session) free(key string) string {
	free := key
	for n := 1; s.places[free] != nil; n++ {
		free = fmt.Sprintf("%s-%x", key, n)
	}
	return free
}

// open begins the session that o stands for.
func (c *core) open(o *opening) {
	defer close(o.done)
	id, since, err := c.grant(c.life)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opening = nil
	if err != nil {
		o.err = err
		return
	}
	s := &session{c: c, id: id, since: since, places: make(map[string]*place)}
	s.life, s.end = context.WithCancel(c.life)
	c.present, c.sessions[s] = s, struct{}{}
	c.jobs.Go(s.keep)
}

// longest is the longest lease that etcd gives: 285 years.
const longest = 9_000_000_000 * time.Second

// grant returns a new lease, and when the request for it was sent.
//
// The client's own Grant repeats its request after a refused certificate, until its context ends
// and the reason is lost.
func (c *core) grant(ctx context.Context) (id clientv3.LeaseID, sent time.Time, err error) {
	req := &etcdserverpb.LeaseGrantRequest{TTL: int64(c.lease / time.Second)}
	err = c.persist(ctx, c.lease/2, func(ctx context.Context) error {
		sent = driver.Now()
		resp, err := etcdserverpb.NewLeaseClient(c.client.ActiveConnection()).LeaseGrant(ctx, req)
		if err != nil {
			return clientv3.ContextError(ctx, err)
		}
		id = clientv3.LeaseID(resp.ID)
		if resp.TTL < req.TTL {
			return status.Errorf(codes.OutOfRange, "a lease of %ds, not %ds, was granted", resp.TTL, req.TTL)
		}
		return nil
	})
	if err == nil {
		return id, sent, nil
	}
	marks := []error{driver.ErrRefused} // a lease without a key is nothing
	if !isRefusal(err) {
		marks = append(marks, driver.ErrUnavailable)
	}
	return 0, sent, driver.Mark(fmt.Errorf("no etcd lease: %w", storeError(err)), marks...)
}

// keep keeps s alive while it has places, until it is over.
//
// The engine of leases renews holds when a third of the time is over, and so keeps the session
// alive too. So keep does work only for waiters, or if a renewal has failed.
func (s *session) keep() {
	c := s.c
	var next time.Time
	for s.life.Err() == nil {
		now := driver.Now()
		c.mu.Lock()
		left := s.since.Add(c.lease).Sub(now)
		rest := max(left-c.lease*3/5, next.Sub(now))
		over := left <= 0 || rest <= 0 && !s.needed()
		if over {
			s.retire()
		}
		c.mu.Unlock()
		switch {
		case over:
			s.die()
		case rest > 0:
			adapter.Sleep(s.life, min(rest, left))
		default:
			s.confirm()
			next = now.Add(max(c.lease/30, pace))
		}
	}
}

// needed reports whether an acquisition has a place in s, or is giving its place up. c.mu is
// held.
func (s *session) needed() bool { return s.has(asked, ending) }

// has reports whether s has a place in one of the states from first to last. c.mu is held.
func (s *session) has(first, last state) bool {
	for _, p := range s.places {
		if first <= p.state && p.state <= last {
			return true
		}
	}
	return false
}

// placesIn returns the places of s in the states from first to last. c.mu is held.
func (s *session) placesIn(first, last state) (ps []*place) {
	for _, p := range s.places {
		if first <= p.state && p.state <= last {
			ps = append(ps, p)
		}
	}
	return ps
}

// confirm keeps s alive, and checks the keys of its places. Places that were given up keep no
// session alive.
func (s *session) confirm() {
	ctx, cancel := context.WithTimeout(s.life, s.c.lease/3)
	defer cancel()
	s.c.mu.Lock()
	places := s.placesIn(waiting, holding)
	s.c.mu.Unlock()
	for some := range slices.Chunk(places, batch) {
		if _, err := s.c.renew(ctx, some); err != nil {
			return
		}
	}
}

// retire makes s take no more keys. s ends as soon as nothing needs it. c.mu is held.
func (s *session) retire() {
	if s.c.present == s {
		s.c.present = nil
	}
}

// die notes that s is over, or will be, and revokes its lease.
func (s *session) die() {
	c := s.c
	c.mu.Lock()
	places := s.places
	s.places = nil
	over := s.life.Err() != nil
	s.retire()
	s.end()
	c.mu.Unlock()
	if over {
		return
	}
	for _, p := range places {
		p.die()
	}
	c.jobs.Go(func() {
		// A late request may have kept the lease alive until now.
		c.persist(c.life, c.lease, func(ctx context.Context) error { return c.revoke(ctx, s) })
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.life.Err() == nil { // else close revokes it
			delete(c.sessions, s)
		}
	})
}

// prolong notes that the lease counts from at, or later. If at is later than before, prolong
// deletes again the keys that were given up, but are not known to be gone for good.
func (s *session) prolong(at time.Time) {
	c := s.c
	c.mu.Lock()
	if !at.After(s.since) {
		c.mu.Unlock()
		return
	}
	s.since = at
	left := s.placesIn(ending, burnt)
	c.mu.Unlock()
	for _, p := range left {
		c.abandon(p)
	}
}

// revoke ends the lease of s on the server.
func (c *core) revoke(ctx context.Context, s *session) error {
	_, err := c.client.Revoke(ctx, s.id)
	return err
}

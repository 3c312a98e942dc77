// Package simulated_test is an author's own store of locks, in memory and behind connections. It
// simulates both, in less than twenty lines each.
package simulated_test

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// store is the server of the locks, in memory. Each method is one decision.
type store struct {
	mu     sync.Mutex
	holds  map[string]hold // by name
	tokens uint64
}

type hold struct {
	acquisition string
	token       uint64
	ends        time.Time
}

// newStore returns a server without locks.
func newStore() *store { return &store{holds: make(map[string]hold)} }

// find returns the hold of the lock called name, and whether acquisition has it. s.mu is held.
func (s *store) find(id driver.HoldID) (h hold, has bool) {
	h = s.holds[id.Name]
	return h, h.acquisition == id.Acquisition && time.Now().Before(h.ends)
}

// Acquire gives a free lock. A request may come twice, so the holder is not refused.
func (s *store) Acquire(_ context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, has := s.find(req.HoldID)
	if left := time.Until(h.ends); left > 0 && !has {
		return driver.Reply{Wait: left}, nil
	}
	if !has {
		s.tokens++
		h = hold{req.Acquisition, s.tokens, time.Time{}}
	}
	h.ends = time.Now().Add(req.TTL)
	s.holds[req.Name] = h
	return driver.Reply{Held: true, Token: h.token}, nil
}

// Lookup says whether an acquisition has the lock.
func (s *store) Lookup(_ context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, has := s.find(req.HoldID)
	return driver.Reply{Held: has, Token: h.token}, nil
}

// Renew prolongs holds whose time is not over.
func (s *store) Renew(_ context.Context, holds []driver.HoldID, ttl time.Duration) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	renewed := make([]bool, len(holds))
	for i, id := range holds {
		h, has := s.find(id)
		if renewed[i] = has; has {
			h.ends = time.Now().Add(ttl)
			s.holds[id.Name] = h
		}
	}
	return renewed, nil
}

// Release ends the hold of an acquisition, and of no other one.
func (s *store) Release(_ context.Context, id driver.HoldID) (driver.Released, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.find(id)
	if has {
		delete(s.holds, id.Name)
	}
	return driver.Released{Held: has, Awaited: true}, nil
}

// Watch returns nil: the server does not notify.
func (s *store) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }

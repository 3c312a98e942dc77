package locksdebug_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// store is a store of leases in memory.
type store struct {
	mu      sync.Mutex
	holders map[string]string
	silent  bool // renewals get no answer
}

func newStore() *store { return &store{holders: make(map[string]string)} }

func (s *store) Acquire(_ context.Context, req lease.Request) (lease.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders[req.Name] != "" {
		return lease.Reply{}, nil
	}
	s.holders[req.Name] = req.Acquisition
	return lease.Reply{Held: true, Token: 42}, nil
}

func (s *store) Lookup(_ context.Context, req lease.Request) (lease.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return lease.Reply{Held: s.holders[req.Name] == req.Acquisition, Token: 42}, nil
}

func (s *store) Renew(_ context.Context, holds []lease.HoldID, _ time.Duration) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent {
		return nil, errors.New("no answer")
	}
	ok := make([]bool, len(holds))
	for i, h := range holds {
		ok[i] = s.holders[h.Name] == h.Acquisition
	}
	return ok, nil
}

func (s *store) Release(_ context.Context, id lease.HoldID) (r lease.Released, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders[id.Name] == id.Acquisition {
		delete(s.holders, id.Name)
	}
	return r, nil
}

func (s *store) Watch(context.Context, lease.HoldID) (lease.Watch, error) { return watch{}, nil }

type watch struct{}

func (watch) C() <-chan struct{} { return nil }
func (watch) Close()             {}

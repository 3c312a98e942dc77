package locksdebug_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// store is a store of leases in memory.
type store struct {
	mu      sync.Mutex
	holders map[string]string
	silent  bool // renewals get no answer
}

func newStore() *store { return &store{holders: make(map[string]string)} }

func (s *store) Acquire(_ context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders[req.Name] != "" {
		return driver.Reply{}, nil
	}
	s.holders[req.Name] = req.Acquisition
	return driver.Reply{Held: true, Token: 42}, nil
}

func (s *store) Lookup(_ context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return driver.Reply{Held: s.holders[req.Name] == req.Acquisition, Token: 42}, nil
}

func (s *store) Renew(_ context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
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

func (s *store) Release(_ context.Context, id driver.HoldID) (r driver.Released, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders[id.Name] == id.Acquisition {
		delete(s.holders, id.Name)
	}
	return r, nil
}

func (s *store) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return watch{}, nil }

type watch struct{}

func (watch) C() <-chan struct{} { return nil }
func (watch) Close()             {}

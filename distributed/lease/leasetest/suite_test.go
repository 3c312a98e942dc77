package leasetest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/named"
)

// server is a store in memory without notices.
type server struct {
	mu     sync.Mutex
	holds  map[string]served // by name
	tokens uint64
}

type served struct {
	acquisition string
	token       uint64
	ends        time.Time
}

func newServer() *server { return &server{holds: make(map[string]served)} }

func (m *server) held(name, acquisition string) (served, bool) {
	h := m.holds[name]
	return h, h.acquisition == acquisition && time.Now().Before(h.ends)
}

func (m *server) Acquire(_ context.Context, req driver.Request) (driver.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left := time.Until(m.holds[req.Name].ends); left > 0 {
		return driver.Reply{Wait: left}, nil
	}
	m.tokens++
	m.holds[req.Name] = served{req.Acquisition, m.tokens, time.Now().Add(req.TTL)}
	return driver.Reply{Held: true, Token: m.tokens}, nil
}

func (m *server) Lookup(_ context.Context, req driver.Request) (driver.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.held(req.Name, req.Acquisition)
	return driver.Reply{Held: ok, Token: h.token}, nil
}

func (m *server) Renew(_ context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	renewed := make([]bool, len(holds))
	for i, id := range holds {
		h, ok := m.held(id.Name, id.Acquisition)
		if ok {
			h.ends = time.Now().Add(d)
			m.holds[id.Name] = h
		}
		renewed[i] = ok
	}
	return renewed, nil
}

func (m *server) Release(_ context.Context, id driver.HoldID) (driver.Released, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.held(id.Name, id.Acquisition)
	if ok {
		delete(m.holds, id.Name)
	}
	return driver.Released{Held: ok, Awaited: true}, nil
}

func (m *server) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }

func TestAStoreInMemoryPasses(t *testing.T) {
	t.Parallel()
	TestInVirtualTime(t, func(testing.TB) Config {
		s := newServer()
		return Config{Store: func(testing.TB, *Link) driver.Store { return s }}
	})
}

func TestVirtualTimeGivesEachCheckItsOwnStore(t *testing.T) {
	outside, opened := time.Now(), 0
	TestInVirtualTime(t, func(tb testing.TB) Config {
		opened++
		if !time.Now().Before(outside) {
			tb.Error("open is called outside of the bubble")
		}
		s := newServer()
		return Config{Store: func(testing.TB, *Link) driver.Store { return s }}
	})
	if n := len(checks()); opened != n {
		t.Errorf("open is called %d times, not %d times", opened, n)
	}
}

func TestRequestsInVirtualTimeTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		requests := check{run: func(s *suite) {
			c, began := s.client(), time.Now()
			c.lookup(s.name(), c.acquisition())
			if took := time.Since(began); took <= 0 || took > 2*time.Millisecond {
				t.Errorf("a request takes %v", took)
			}
			began = time.Now()
			if s.pause(0); time.Since(began) <= 0 {
				t.Error("a pause of zero stops the time")
			}
		}}
		requests.virtually(t, Config{Store: func(testing.TB, *Link) driver.Store { return s }})
	})
}

// TestStore is for real servers, so it takes real time.
func TestALockWithoutLeasesPassesInRealTime(t *testing.T) {
	t.Parallel()
	shared := new(named.Provider)
	TestStore(t, Config{Open: func(testing.TB, *Link, ...lease.Option) locks.Provider { return shared }})
}

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// memory is a complete Store. Its server is a map, so that no request fails. All clients share it.
type memory struct {
	mu     sync.Mutex
	holds  map[string]memoryHold // by name
	tokens uint64
}

type memoryHold struct {
	acquisition string
	token       uint64
	ends        time.Time
}

// held returns the hold of an acquisition, if it has the lock. m.mu is held.
func (m *memory) held(id driver.HoldID) (memoryHold, bool) {
	h := m.holds[id.Name]
	return h, h.acquisition == id.Acquisition && time.Now().Before(h.ends)
}

// Acquire looks at the hold and replaces it in one step. The time of the server counts. The network may
// repeat a request, so the holder is not refused.
func (m *memory) Acquire(_ context.Context, req driver.Request) (driver.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, again := m.held(req.HoldID)
	if left := time.Until(m.holds[req.Name].ends); left > 0 && !again {
		return driver.Reply{Wait: left}, nil
	}
	m.tokens++
	m.holds[req.Name] = memoryHold{req.Acquisition, m.tokens, time.Now().Add(req.TTL)}
	return driver.Reply{Held: true, Token: m.tokens}, nil
}

// Lookup says which acquisition holds, after an Acquire whose reply was lost.
func (m *memory) Lookup(_ context.Context, req driver.Request) (driver.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.held(req.HoldID)
	return driver.Reply{Held: ok, Token: h.token}, nil
}

// Renew prolongs what is held. A hold whose time is over stays lost.
func (m *memory) Renew(_ context.Context, holds []driver.HoldID, ttl time.Duration) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	renewed := make([]bool, len(holds))
	for i, id := range holds {
		h, ok := m.held(id)
		if ok {
			h.ends = time.Now().Add(ttl)
			m.holds[id.Name] = h
		}
		renewed[i] = ok
	}
	return renewed, nil
}

// Release compares and deletes in one step: a late one does not free the hold of another client.
func (m *memory) Release(_ context.Context, id driver.HoldID) (driver.Released, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.held(id)
	if ok {
		delete(m.holds, id.Name)
	}
	return driver.Released{Held: ok, Awaited: true}, nil
}

// Watch returns nil: this store cannot notify, so that its waiters ask from time to time.
func (m *memory) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }

func ExampleStore() {
	client, err := lease.New(&memory{holds: make(map[string]memoryHold)}, driver.WithErrorPrefix("memory"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer client.Close(ctx)
	orders := client.Mutex("orders")
	err = locks.Do(ctx, orders, func(ctx context.Context) error {
		hold, err := orders.Hold(ctx)
		if err == nil {
			fmt.Println("held, token", hold.Token())
		}
		return err
	})
	fmt.Println(err)
	fmt.Println(errors.Is(orders.UnlockContext(ctx), locks.ErrNotHeld))
	// Output:
	// held, token 1
	// <nil>
	// true
}

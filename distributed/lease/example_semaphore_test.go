package lease_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// pool is a complete Store of semaphores. Its server is a map, so that no request fails.
type pool struct {
	mu     sync.Mutex
	grants map[driver.HoldID]grant
	tokens uint64
}

type grant struct {
	permits int64
	token   uint64
	ends    time.Time
}

func newPool() *pool { return &pool{grants: make(map[driver.HoldID]grant)} }

// Acquire counts what the others have, and adds to it in one step.
func (p *pool) Acquire(_ context.Context, req driver.Request) (reply driver.Reply, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	permits, size := req.Weigh()
	taken := permits
	for id, g := range p.grants {
		left := time.Until(g.ends)
		switch {
		case left <= 0:
			delete(p.grants, id)
		case id.Name == req.Name && id != req.HoldID:
			taken += g.permits
			if reply.Wait == 0 || left < reply.Wait {
				reply.Wait = left // until some permits return by themselves
			}
		}
	}
	if taken > size {
		return reply, nil
	}
	p.tokens++
	p.grants[req.HoldID] = grant{permits, p.tokens, time.Now().Add(req.TTL)}
	return driver.Reply{Held: true, Token: p.tokens}, nil
}

// held returns what an acquisition has. p.mu is held.
func (p *pool) held(id driver.HoldID) (grant, bool) {
	g, ok := p.grants[id]
	return g, ok && time.Now().Before(g.ends)
}

func (p *pool) Lookup(_ context.Context, req driver.Request) (driver.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.held(req.HoldID)
	return driver.Reply{Held: ok, Token: g.token}, nil
}

func (p *pool) Renew(_ context.Context, holds []driver.HoldID, ttl time.Duration) ([]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	renewed := make([]bool, len(holds))
	for i, id := range holds {
		g, ok := p.held(id)
		if ok {
			g.ends = time.Now().Add(ttl)
			p.grants[id] = g
		}
		renewed[i] = ok
	}
	return renewed, nil
}

func (p *pool) Release(_ context.Context, id driver.HoldID) (driver.Released, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.held(id)
	delete(p.grants, id)
	return driver.Released{Held: ok, Awaited: true}, nil
}

func (p *pool) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }

// At most three backups at the same time, on however many machines. Two more wait.
func ExampleSemaphore() {
	ctx := context.Background()
	client := opened(newPool()) // an adapter opens it
	defer client.Close(ctx)
	var backups *lease.Semaphore = client.Semaphore("backups", 3)

	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			permit, err := backups.AcquireContext(ctx, 1)
			if err != nil {
				fmt.Println(err)
				return
			}
			defer permit.ReleaseContext(ctx)
			// Work, until permit.Lost() is closed.
		})
	}
	wg.Wait()
	all, ok, err := backups.TryAcquireContext(ctx, 3)
	if ok { // else they are not free
		fmt.Println("all are free:", all.Count(), err)
	}
	// Output: all are free: 3 <nil>
}

// Code that is written for a lock runs with a permit as well.
func ExampleSemaphore_Locker() {
	ctx := context.Background()
	client := opened(newPool())
	defer client.Close(ctx)

	permit := client.Semaphore("backups", 3).Locker(1)
	err := locks.Do(ctx, permit, func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		fmt.Print("token ", hold.Token(), ", ")
		return nil
	})
	fmt.Println(err)
	// Output: token 1, <nil>
}

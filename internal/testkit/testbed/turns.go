package testbed

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
)

// Turns is the test of turns: several clients take turns on one lock, on a store where nothing
// fails. No two clients hold the lock at once, and no client waits for long. Give the lock a TTL
// of several times the limit, so that a wait for the end of a lease is found.
type Turns struct {
	// Open returns the lock of a new client, which is closed with the test.
	Open func() locks.TryLocker
	// Clients is how many there are, six if 0.
	Clients int
	// Time is for how long they begin new turns, four seconds if 0.
	Time time.Duration
	// Limit is how long a wait may take, five seconds if 0. Only a stall takes longer.
	Limit time.Duration
}

// Run runs the test, and reports acquisitions a second and the longest wait.
func (x Turns) Run(tb testing.TB) {
	tb.Helper()
	if x.Clients == 0 {
		x.Clients = 6
	}
	if x.Time == 0 {
		x.Time = 4 * time.Second
	}
	if x.Limit == 0 {
		x.Limit = 5 * time.Second
	}
	clients := make([]locks.TryLocker, x.Clients)
	for i := range clients {
		clients[i] = x.Open()
	}
	var inside, turns atomic.Int64
	began := time.Now()
	turn := func(l locks.TryLocker, owner context.Context) (wait time.Duration, err error) {
		ctx, cancel := context.WithTimeout(owner, x.Limit)
		defer cancel()
		asked := time.Now()
		err = l.LockContext(ctx)
		wait = time.Since(asked)
		if err != nil {
			return wait, fmt.Errorf("no turn within %v: %w", wait, err)
		}
		n := inside.Add(1)
		runtime.Gosched() // another holder would come in now
		inside.Add(-1)
		if n != 1 {
			return wait, fmt.Errorf("%d holders at once", n)
		}
		turns.Add(1)
		return wait, l.UnlockContext(owner)
	}
	longest := make([]time.Duration, len(clients))
	var wg sync.WaitGroup
	for i, l := range clients {
		wg.Go(func() {
			owner := locks.WithOwner(context.Background(), locks.NewOwner())
			for time.Since(began) < x.Time {
				wait, err := turn(l, owner)
				longest[i] = max(longest[i], wait)
				if err != nil {
					tb.Errorf("turns: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	tb.Logf("%d clients: %.0f acquisitions a second, the longest wait %v",
		x.Clients, float64(turns.Load())/time.Since(began).Seconds(), slices.Max(longest).Round(time.Millisecond))
}

package driver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// described is a Store that can describe its locks. It keeps the identity of each client once.
type described struct {
	*memory
	client, identity string
	identities       map[string]string // by client
	inspect          func(name string) driver.State
}

// Identify remembers how this process is described.
func (d *described) Identify(client, identity string) { d.client, d.identity = client, identity }

// Announce keeps the description where other processes find it. This one never expires.
func (d *described) Announce(context.Context, time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.identities[d.client] = d.identity
	return nil
}

func (d *described) Inspect(_ context.Context, name string) (driver.State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inspect(name), nil
}

func ExampleInspector() {
	store := &described{memory: &memory{holds: make(map[string]memoryHold)}, identities: make(map[string]string)}
	var _ driver.Inspector = store
	var _ driver.Announcer = store // because its holds have no room for an identity
	store.inspect = func(name string) driver.State {
		s := driver.State{Waiting: -1} // this store does not know its waiters
		if h, ok := store.holds[name]; ok {
			c := driver.Claim{Acquisition: h.acquisition, Identity: store.identities[store.client]}
			c.Token, c.Left = h.token, time.Until(h.ends)
			s.Holders = append(s.Holders, c)
		}
		return s
	}

	client, err := lease.New(store, lease.WithLabel("billing"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer client.Close(ctx)
	orders := client.Mutex("orders")
	if err := orders.LockContext(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer orders.UnlockContext(ctx)
	info, err := orders.Inspect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range info.Holders {
		fmt.Println(h.Label, "holds the lock with the token", h.Token)
	}
	// Output: billing holds the lock with the token 1
}

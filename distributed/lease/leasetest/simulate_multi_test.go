package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
	"github.com/jucgo/locks/internal/test/effort"
)

// bothClients gives locks that consist of a lock on each of two servers.
type bothClients struct {
	first, second *lease.Client
	members       func(name string) []string // the names on both servers, once if they are equal
}

func (c bothClients) Locker(name string) locks.TryLocker {
	names := c.members(name)
	return locks.Multi(c.second.Mutex(names[len(names)-1]), c.first.Mutex(names[0]))
}

func (c bothClients) Close(ctx context.Context) error {
	return errors.Join(c.first.Close(ctx), c.second.Close(ctx))
}

// multis is a configuration for locks on two stores of this kind. members are their names there.
func multis(servers [2]*fakestore.Server, kind fakestore.Kind, members func(name string) []string) Config {
	var both [2]Config
	for i, s := range servers {
		both[i] = dialing(s, kind, nil)
	}
	cfg := Config{FIFO: both[0].FIFO, exact: true, members: members}
	cfg.Rest = func(tb testing.TB, name string) {
		names := members(name)
		both[0].Rest(tb, names[0])
		both[1].Rest(tb, names[len(names)-1])
	}
	cfg.Open = func(tb testing.TB, link *Link, opts ...lease.Option) locks.Provider {
		open := func(server int) *lease.Client {
			c, err := lease.New(both[server].Store(tb, link.Server(server)),
				append([]lease.Option{driver.WithPlace([]string{"first", "second"}[server], "")}, opts...)...)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return c
		}
		return bothClients{open(0), open(1), members}
	}
	return cfg
}

// multiNames are the names of members. Between equal names there is no order, so a Multi tries one
// of the members.
var multiNames = map[string]func(name string) []string{
	"ordered": func(name string) []string { return []string{"a-" + name, name} },
	"tried":   func(name string) []string { return []string{name} },
}

// multiSeeds are the seeds of lives that have found something.
var multiSeeds = map[string][]uint64{
	// Err returned a loss before Lost was closed, and an extension by the owner before shortened a
	// hold.
	"ordered/watched": {14848727996547872920, 4950171911726442672},
	"ordered/full":    {14103608129220912784},                       // the same
	"tried/watched":   {18002039042140204464},                       // the same
	"tried/queued":    {7783719587089242937},                        // a wait failed by a loss that a roll-back met
	"tried/full":      {10406242072324793941},                       // clients that are closed one after the other
	"ordered/queued":  {12703732799812478290, 17005290363218773018}, // the same, and a place of unknown order
}

func TestLivesOfMultisOverTwoStores(t *testing.T) {
	t.Parallel()
	for how, members := range multiNames {
		for _, kind := range []fakestore.Kind{fakestore.Watched, fakestore.Queued, fakestore.Full} {
			t.Run(how+"/"+string(kind), func(t *testing.T) {
				Simulate(t, World{
					Servers: 2, For: effort.Part(3 * time.Minute), Seeds: multiSeeds[how+"/"+string(kind)],
					Open: func(testing.TB) Config {
						return multis([2]*fakestore.Server{fakestore.NewServer(""), fakestore.NewServer("")}, kind, members)
					},
				})
			})
		}
	}
}

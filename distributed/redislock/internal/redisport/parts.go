package redisport

import (
	"context"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Constructors of the packages redislock and redlock, for each other and for packages with a [Port]
// of another client library. The packages set them when they are initialized. They do not export
// them, because no other package can make a Port. opts is a []redislock.Option. The results are a
// *redislock.Client, a *redislock.Gate and a *redlock.Client.
var (
	NewClient  func(p Port, opts any) (any, error)
	NewGate    func(p Port) any
	NewPlain   func(p Port, o *Options) (Plain, error)
	NewRedlock func(ports []Port, opts any) (any, error)

	// Semaphores returns the lease.Client behind the semaphores of a *redislock.Client, for the
	// proof of its store.
	Semaphores func(client any) (*lease.Client, error)
	// Expirable returns the store of the client's semaphores in Redisson's format.
	Expirable func(client any) driver.Store
)

// Options are the settings that a redislock.Option changes.
type Options struct {
	Lease    []lease.Option
	PubSub   int // a redislock.PubSub
	FairWait time.Duration

	// Wrap, if not nil, returns the store that a client uses in place of its store s. timeout is
	// the ReplyTimeout of the client's [Port].
	Wrap func(s Store, timeout time.Duration) (driver.Store, error)

	// Of package redlock: how long one server may take to answer, and whether a renewal restores.
	NodeTimeout time.Duration
	Restore     bool
}

// Store is the store of any lock of package redislock.
type Store interface {
	driver.Store
	driver.Queue
	driver.Breaker
	driver.Inspector
	driver.Announcer
	driver.LossNotifier
	driver.BatchReleaser
}

// Evaluator is the Data of a request to a [Store] whose script runs in another way than by
// [Port.Eval]. With an Evaluator, scripts that look a hold up also write something.
type Evaluator interface {
	Eval(ctx context.Context, p Port, s *Script, keys int, args []any) (any, error)
}

// Plain is the plain lock of package redislock on one server.
type Plain interface {
	driver.Inspector
	driver.Announcer
	Lookup(ctx context.Context, req driver.Request) (driver.Reply, error)
	Renew(ctx context.Context, holds []driver.HoldID, ttl time.Duration) ([]bool, error)
	Release(ctx context.Context, id driver.HoldID) (driver.Released, error)

	// Check returns why name cannot be the name of a lock.
	Check(name string) error

	// Notify is Watch of a [driver.Store] with the channel c. It waits a second at most for the
	// subscription, and reports whether the subscription is active.
	Notify(ctx context.Context, name string, bell adapter.Bell) (w driver.Watch, active bool, err error)

	// Close ends all subscriptions.
	Close(ctx context.Context)
}

package redisport

import (
	"context"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// NewPlain returns a [Plain] on the server of p, for package redlock. Package redislock sets it.
var NewPlain func(p Port, o *Options) (Plain, error)

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
	driver.BatchReleaser

	// Check returns why name cannot be the name of a lock.
	Check(name string) error

	// Notify is Watch of a [driver.Store] with the channel c. It waits a second at most for the
	// subscription, and reports whether the subscription is active.
	Notify(ctx context.Context, name string, bell adapter.Bell) (w driver.Watch, active bool, err error)

	// Close ends all subscriptions.
	Close(ctx context.Context)
}

package driver

import (
	"context"
	"time"

	"github.com/jucgo/locks"
)

// Inspector is an optional interface of a [Store] that can describe a lock to people.
type Inspector interface {
	// Identify is called once, before anything else. The names of all acquisitions begin with the
	// text client, up to a colon. The text identity describes this process in one line of at most
	// 4096 bytes. The store keeps it with each hold and each place in a queue, or implements
	// [Announcer].
	Identify(client, identity string)

	// Inspect describes the lock called name. It changes nothing. If something other than a lock
	// is under the name, the error matches locks.ErrForeign.
	Inspect(ctx context.Context, name string) (State, error)
}

// Announcer is an optional interface of an [Inspector] that keeps the identity of a client once,
// and not with each of its holds.
type Announcer interface {
	// Announce keeps the client's identity for ttl. A lease.Client that is in use calls it once a
	// minute at most, in the background. An error does not affect locks.
	Announce(ctx context.Context, ttl time.Duration) error
}

// State describes a lock as far as an [Inspector] knows it.
type State struct {
	// Held is true if the lock has a holder, known or not. Shared is true if the holders share
	// the lock.
	Held, Shared bool
	// Holders and Waiters are the known holders and waiters. The longest wait comes first.
	Holders, Waiters []Claim
	// Waiting is the number of waiters in the store, or -1 if the number is unknown.
	Waiting int
}

// Claim is a hold or a place in a queue.
type Claim struct {
	// Acquisition is the name that the Store got, or any other name that the store has in its
	// place. It may be empty.
	Acquisition string
	// Identity is the text that Identify got in the process of the claim, or any other text.
	Identity string
	// Party has the facts that the store itself knows.
	locks.Party
}

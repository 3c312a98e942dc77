package locks

import (
	"context"
	"time"
)

// Inspector is a lock that returns its holders and waiters, for people and for monitoring. When
// a caller reads the answer, the lock may already have another holder.
type Inspector interface {
	// Inspect returns what is known about the lock. A distributed lock asks its store, and the
	// end of ctx ends the request. A ctx that has ended already is an error.
	Inspect(ctx context.Context) (Info, error)
}

// Info describes a lock at one moment.
type Info struct {
	// Held is true if the lock has a holder. Shared is true if the holders share the lock, as
	// readers do.
	Held, Shared bool
	// Holders are the known holders. A lock without owners knows none.
	Holders []Party
	// Waiting is the number of waiters, or -1 if the number is unknown.
	Waiting int
	// Waiters are the known waiters, longest wait first.
	Waiters []Party
}

// Party describes a holder of a lock or a waiter for it. A zero field is unknown.
type Party struct {
	// Owner is the owner, if it belongs to this process.
	Owner Owner
	// Label, Host and PID describe the process. A program sets its label by an option of the
	// adapter.
	Label, Host string
	PID         int
	// Since is the time at which the hold or the wait began.
	Since time.Time
	// Left is the time until the lease expires if it is not renewed.
	Left time.Duration
	// Token is the fencing token of the hold.
	Token uint64
	// Permits is the number of permits of a semaphore that the party has, or waits for.
	Permits int64
}

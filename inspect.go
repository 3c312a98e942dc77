package locks

import (
	"context"
	"time"
)

// Inspector is a lock that tells who holds it and who waits for it. It is for people and for
// monitoring: by the time that a caller reads the answer, the lock may have another holder.
type Inspector interface {
	// Inspect returns what is known about the lock. A distributed lock asks its store, and the
	// request ends with ctx. A ctx that has ended already is an error.
	Inspect(ctx context.Context) (Info, error)
}

// Info describes a lock at one moment.
type Info struct {
	// Held says that somebody holds the lock. Shared says that the holders share it, as readers
	// do.
	Held, Shared bool
	// Holders are the holders that are known. A lock without owners knows none.
	Holders []Party
	// Waiting is how many wait for the lock, or -1 if that is unknown.
	Waiting int
	// Waiters are the waiters that are known, longest wait first.
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
	// Since is when the hold or the wait began.
	Since time.Time
	// Left is for how long the lease lasts without a renewal.
	Left time.Duration
	// Token is the fencing token of the hold.
	Token uint64
}

package locks

import (
	"context"
	"time"
)

// Leased is a lock that can be lost while it is held: its store frees it if the holder does not
// renew the lease in time.
type Leased interface {
	TryLocker

	// Hold returns the caller's current hold, or an error matching [ErrNotHeld] if there is
	// none. A lost hold stays current until it is unlocked.
	Hold(ctx context.Context) (Hold, error)
}

// Hold is one uninterrupted possession of a [Leased] lock, from the owner's first acquisition to
// its last release. It is safe for concurrent use.
type Hold interface {
	// Lost returns a channel that is closed when the lock is lost, before the store can give the
	// lock to another owner. A release does not close it.
	Lost() <-chan struct{}

	// Err returns nil while the lock is held, and an error matching [ErrLost] once it is lost.
	// Err compares the clock with the deadline. Therefore the answer is right even on the first
	// line that runs after a pause of the process. On Linux this includes a suspension of the
	// machine. On other systems the monotonic clock may stand still during a suspension; see
	// package distributed/lease.
	Err() error

	// Token returns the fencing token, which strictly increases from holder to holder, or 0 if
	// the store has no tokens. The holder sends the token with each write to the guarded
	// resource. The resource refuses a write with a smaller token than it has seen.
	Token() uint64

	// Deadline returns the time until which the hold is surely valid, and false if it has no
	// such time.
	Deadline() (deadline time.Time, ok bool)

	// Extend prolongs the hold to d from now. If the hold is over, it returns an error matching
	// [ErrLost]. It never acquires the lock again. On etcd and ZooKeeper a hold lasts no longer
	// than a session: a longer d counts as the time of a session. Deadline then returns the
	// actual time.
	Extend(ctx context.Context, d time.Duration) error
}

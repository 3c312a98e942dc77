package locks

import (
	"context"
	"time"
)

// Leased is a lock that can be lost while it is held: its store frees it when the holder was
// silent for too long.
type Leased interface {
	TryLocker

	// Hold returns the caller's current hold, or an error matching [ErrNotHeld] if there is none.
	// A hold that was lost is current until it is unlocked.
	Hold(ctx context.Context) (Hold, error)
}

// Hold is one uninterrupted possession of a [Leased] lock, from the first acquisition to the last
// release. It is safe for concurrent use.
type Hold interface {
	// Lost returns a channel that is closed when the lock is lost, before the store could give it
	// to anyone else. It is not closed by a release.
	Lost() <-chan struct{}

	// Err returns nil while the lock is held, and an error matching [ErrLost] once it is lost. It
	// compares the clock with the deadline itself, so the answer is right even on the first line
	// that runs after the process was paused. On Linux that includes a suspension of the machine.
	// On other systems the monotonic clock may stand still meanwhile; package distributed/lease
	// says what remains.
	Err() error

	// Token returns the fencing token, which strictly increases from holder to holder, or 0 where
	// the store has none. The holder sends it with each write to the guarded resource sends it
	// along, and the resource refuses smaller ones.
	Token() uint64

	// Deadline returns the conservative end of validity, and false if the hold has none.
	Deadline() (deadline time.Time, ok bool)

	// Extend prolongs the hold to d from now. It returns an error matching [ErrLost], and never
	// takes the lock anew, if the hold is over.
	Extend(ctx context.Context, d time.Duration) error
}

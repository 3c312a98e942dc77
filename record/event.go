package record

import (
	"strconv"
	"time"

	"github.com/jucgo/locks"
)

// Kind is what happened.
type Kind uint8

const (
	// Waiting begins a LockContext. Exactly one of Acquired, Cancelled and Failed ends it.
	Waiting Kind = iota + 1
	// Acquired is one more hold, of LockContext or of TryLockContext.
	Acquired
	// Released is one hold given back.
	Released
	// Cancelled is an acquisition that ended with its context.
	Cancelled
	// Failed is an acquisition that came to nothing otherwise: a TryLockContext that found the
	// lock taken, for which Err is nil, or an error of the lock.
	Failed
	// Refused is an unlock that returned an error.
	Refused
)

var kinds = [...]string{Waiting: "waiting", Acquired: "acquired", Released: "released",
	Cancelled: "cancelled", Failed: "failed", Refused: "refused"}

// String returns the name in lower case, such as "acquired".
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kinds) {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kinds[k]
}

// Event is one thing that happened to a lock.
type Event struct {
	Kind  Kind
	Lock  string      // the name given to Wrap
	Owner locks.Owner // by whom

	// At is when, on the monotonic clock, from the Recorder's start. That of Released is just
	// before the lock is given up, and that of Acquired just after it was taken: holds that
	// exclude each other do not overlap.
	At time.Duration

	// Wait is how long an acquisition took, for Acquired, Cancelled and Failed.
	Wait time.Duration

	// Holds is how many holds the owner has after Acquired or Released, and Held, when that is 0,
	// for how long it had the lock.
	Holds int
	Held  time.Duration

	// Try tells that it was TryLockContext.
	Try bool

	// Shared tells that the lock is the read side of one wrapped by WrapReadWrite.
	Shared bool

	// Err is the error of Cancelled, Failed and Refused.
	Err error

	order uint64 // among the events of one moment; only for a Recorder's own
}

package record

import (
	"strconv"
	"time"

	"github.com/jucgo/locks"
)

// Kind says what an [Event] is about.
type Kind uint8

const (
	// Waiting is the start of LockContext or Lock. Exactly one of Acquired, Cancelled and Failed
	// follows it.
	Waiting Kind = iota + 1
	// Acquired is one more hold.
	Acquired
	// Released is one hold less.
	Released
	// Cancelled is an acquisition that ended with its context.
	Cancelled
	// Failed is any other acquisition that failed: TryLockContext found the lock held, for which
	// Err is nil, or the lock returned an error.
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
	Owner locks.Owner // of the call

	// At is the time since the Recorder's start, on the monotonic clock. A release is dated just
	// before it, an acquisition just after it. Therefore holds that exclude each other do not
	// overlap.
	At time.Duration

	// Wait is the duration of the acquisition, for Acquired, Cancelled and Failed.
	Wait time.Duration

	// Holds is the number of holds of the owner after Acquired or Released. Held is for how long
	// the owner had the lock, if a release leaves it no hold.
	Holds int
	Held  time.Duration

	// Try tells that the call was TryLockContext.
	Try bool

	// Shared tells that the lock is the read side of a lock that WrapReadWrite wrapped.
	Shared bool

	// Err is the error of Cancelled, Failed and Refused.
	Err error

	order uint64 // of the events of one moment; 0 outside of a Recorder
}

package record

import (
	"strconv"
	"time"

	"github.com/jucgo/locks"
)

// Kind is the kind of an [Event].
type Kind uint8

const (
	// Waiting is the start of LockContext or Lock. Exactly one of Acquired, Cancelled and Failed
	// follows it.
	Waiting Kind = iota + 1
	// Acquired is one more hold.
	Acquired
	// Released is the end of one hold.
	Released
	// Cancelled is an acquisition that failed because its context ended.
	Cancelled
	// Failed is any other failed acquisition: the lock returned an error, or TryLockContext
	// found the lock held, and then Err is nil.
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

// Event is one step of a call of a lock.
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

	// Holds is the number of the owner's holds after Acquired or Released. Held is the time for
	// which the owner had the lock, if the release was its last, or if it was refused because the
	// lock was lost. An owner that lost the lock does not hold it any more.
	Holds int
	Held  time.Duration

	// Try is true if the call was TryLockContext.
	Try bool

	// Shared is true if the lock is the read side of a lock that WrapReadWrite wrapped.
	Shared bool

	// Err is the error of Cancelled, Failed and Refused.
	Err error

	order uint64 // of the events of one moment; 0 outside of a Recorder
}

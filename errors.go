package locks

import (
	"errors"

	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/unheld"
)

// The errors of this module. Test for them with [errors.Is]: the Context family returns them
// wrapped with the attempted operation. The plain family has no error result, and panics on
// misuse. The value of such a panic is [ErrNotHeld], wrapped with the attempted operation, or
// another of these errors itself. Either way the lock is unchanged and remains usable.
var (
	// ErrNotHeld reports an operation that needs a hold, called without one: an unlock by a
	// non-owner or of a free lock, or a wait or a signal without the lock. Java's
	// IllegalMonitorStateException.
	//
	// The text names the holder, or says that the lock is free. For a lock on a store, the text
	// names the holders of the own client only: no request is sent to find others. A hold belongs
	// to the goroutine that acquired it. Use [WithOwner] for a hold that another goroutine
	// releases.
	ErrNotHeld = unheld.Err

	// ErrLost reports that the lease of a lock expired, or that the store took the lock away,
	// while the lock was held.
	ErrLost = errors.New("lease lost")

	// ErrUpgrade reports that a holder of a read lock asked for the write lock. It would wait
	// for its own read hold for ever.
	ErrUpgrade = errors.New("read lock cannot be upgraded to the write lock: release the read lock first")

	// ErrDeadlock reports an acquisition that was refused because its wait would have closed a
	// cycle of waits.
	ErrDeadlock = errors.New("deadlock")

	// ErrTooManyHolds reports that one more hold would exceed the number of holds that the lock
	// can count.
	ErrTooManyHolds = errors.New("too many holds")

	// ErrTooLarge reports an acquisition of more permits than a semaphore has.
	ErrTooLarge = errors.New("more permits than the semaphore has")

	// ErrClosed reports that the client or provider behind the lock was closed.
	ErrClosed = errors.New("client closed")

	// ErrForeign reports that the object under a name is not a lock of this kind: a store has
	// other data under the lock's name, or a condition belongs to another lock.
	ErrForeign = errors.New("foreign object")

	// ErrNilContext reports a nil [context.Context].
	ErrNilContext = ctxerr.ErrNil

	// ErrNilFunc reports a nil function where one is needed. A call that returns errors returns
	// ErrNilFunc. Any other call panics with it.
	ErrNilFunc = ctxerr.ErrNilFunc
)

package lease

import (
	"context"
	"errors"
	"time"
)

// ErrRefused is matched by the errors of a [Store] that say that a request was surely not carried out: the store's answer
// was an error. Whatever other error there is leaves open what has happened, but for locks.ErrForeign.
var ErrRefused = errors.New("lease: refused by the store")

// ErrUnavailable is matched by those errors matching [ErrRefused] that are expected to pass, such as of a server that is starting
// or of a pool without a free connection. Who waits for a lock goes on to do so.
var ErrUnavailable = errors.New("lease: store is not available now")

// ErrUnreachable is matched by those errors matching [ErrUnavailable] that say that no connection to the store could be
// made. Its address may be wrong.
var ErrUnreachable = errors.New("lease: store cannot be reached")

// Store is what an adapter has to do: the protocol of one kind of lock, over one client of its
// store. It keeps no state of holds; [Client] does.
//
// owner is the name of one acquisition and the hold that comes of it, unique among all processes and times. A Store never takes, prolongs or frees
// anything for another one. All methods may be called concurrently. They return when ctx ends at
// the latest, if the client under them can; what it goes on to do then is not awaited.
type Store interface {
	// Acquire asks once, without waiting, for the lock called name, for owner and for the time lease from
	// when the store decides. It must not repeat a request that may have been carried
	// out: the reply tells apart what the store decided from what is unknown, which is an
	// error.
	//
	// An error matching locks.ErrForeign says that there is something else under the name, and one matching
	// [ErrRefused] that nothing was done; neither is followed by a Recall.
	Acquire(ctx context.Context, name, owner string, lease time.Duration) (Reply, error)

	// Lookup asks whether owner holds the lock, after an Acquire whose outcome is unknown.
	Lookup(ctx context.Context, name, owner string) (Reply, error)

	// Renew makes the holds last for lease from now, and reports of each whether it does. It never
	// takes a lock anew. If it fails for some of them only, it returns the error, and true for the others.
	Renew(ctx context.Context, holds []HoldID, lease time.Duration) ([]bool, error)

	// Release frees the lock if owner holds it. It may be repeated, also long after an earlier one, and for an owner that never
	// had the lock.
	Release(ctx context.Context, name, owner string) (Released, error)

	// Watch tells when the lock called name may have become free for owner. The client asks again
	// once it has the watch, so that nothing in between is missed, unless the last answer was [Reply.Listening]. A notification may
	// come without a reason, and may be lost, which costs time.
	Watch(ctx context.Context, name, owner string) (Watch, error)
}

// Reply is what a store answers who asks for a lock.
type Reply struct {
	// Held is whether the lock is the asker's.
	Held bool
	// Token is the fencing token of the hold, or 0 where the store has none.
	Token uint64
	// Wait is for how long the lock will not be free unless it is released, or 0 if that is
	// unknown.
	Wait time.Duration
	// Since is from when on the store counts the time of the hold, by this process's clock, if that is not the time
	// of this request: before it, if the hold is part of a session that was there already. Zero: the time of this request.
	Since time.Time
	// Listening is whether owner's notifications were on already when this request was sent. What Watch returns has missed nothing
	// then, and the client does not ask once more because of it.
	Listening bool
}

// Released is what a store answers who gives a lock back.
type Released struct {
	// Held is whether it was the asker's until now.
	Held bool
	// Awaited is whether anybody else may be waiting for it. A store that cannot tell says so always.
	Awaited bool
}

// HoldID names a hold.
type HoldID struct{ Name, Acquisition string }

// Watch is the notice of one waiter.
type Watch interface {
	// C delivers notifications. It is never closed.
	C() <-chan struct{}
	// Close ends the watch.
	Close()
}

// Queue is what a [Store] has in addition that gives its locks away in the order in which they were asked for.
type Queue interface {
	// Enqueue is Acquire for those who will wait: if the lock is refused, owner has a place in its queue from then on, and
	// keeps it as long as it asks again, until it has the lock or leaves. Acquire leaves no trace.
	Enqueue(ctx context.Context, name, owner string, lease time.Duration) (Reply, error)

	// Leave gives owner's place up, if it has one. It may be repeated.
	Leave(ctx context.Context, name, owner string) error
}

// Teller is what a [Queue] has in addition that may know by itself, when it notifies who waits, that it is his turn.
type Teller interface {
	// Granted is Enqueue for owner, if the answer is known to be that he has the lock: by something that the server has said since
	// owner has his place in the queue, and that others cannot have made untrue but by taking his place away. If the server counts
	// the time of the hold from earlier than this call, Reply.Since says from when on. A hold that it gives is renewed, released
	// and lost like any other one.
	//
	// It asks no server and waits for nothing: it is called in the goroutine of who waits, who cannot leave meanwhile. It is called
	// before each Enqueue of an acquisition that can be cancelled, also before the first, when owner has no place yet, and never while
	// one of that owner is under way. If it reports false, owner's place is as it was, and Enqueue is called. It is not called for
	// holds that last for a time of their own, which would have to be renewed to have the whole of it.
	Granted(name, owner string) (Reply, bool)
}

// Usher is what a [Store] has in addition that knows who waits, to wake one at a time. Unlike a place in a [Queue] that is a
// hint: who gets the lock is decided by the requests for it.
type Usher interface {
	// Await is Acquire for those who will wait: if the lock is refused, the store knows that owner waits from then on, until owner has
	// the lock, or Forget is called. Acquire leaves no trace.
	Await(ctx context.Context, name, owner string, lease time.Duration) (Reply, error)

	// Forget ends that owner waits, if it does, and wakes somebody else if it was owner's turn. It is called when owner has
	// given up, and no request of it is under way. It may fail, which costs time.
	Forget(ctx context.Context, name, owner string)
}

// Breaker is what a [Store] has in addition whose locks can be freed without their holders.
type Breaker interface {
	// Break frees the lock called name, whoever holds it, wakes those who wait, and reports whether anybody held it. It
	// returns an error matching locks.ErrForeign, and leaves everything as it is, if something else is under the name.
	Break(ctx context.Context, name string) (bool, error)
}

// LossNotifier is what a [Store] has in addition that can learn by itself that a hold has ended, such as from the end of a session
// with its server, before the next renewal would tell.
type LossNotifier interface {
	// NotifyLoss is called once, before anything else, with the function to call for a hold that has surely ended: it is lost
	// when lost returns. lost may be called from any goroutine and at any time, also before the store has given the answer that
	// there is this hold: the client gets one then that is lost. It does not wait for anything, and ignores what is no hold.
	// cause is joined to locks.ErrLost, if it is not nil.
	NotifyLoss(lost func(r HoldID, cause error))
}

// ContentionProber is what a [Store] has in addition that can tell whether anybody waits for a lock without giving it back.
type ContentionProber interface {
	// Contended reports whether anybody but those who wait at the gate of this client may be waiting for the lock called name. It may
	// say so without a reason, and may overlook who does not wait by Watch.
	Contended(ctx context.Context, name string) (bool, error)
}

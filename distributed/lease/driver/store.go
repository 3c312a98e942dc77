package driver

import (
	"context"
	"errors"
	"time"
)

// The errors of a [Store] are of three classes: the server refuses the request, the connection, or
// the moment. [Mark] puts an error into a class.
//
//	the server refuses        marks                                such as
//	the request               ErrRefused                           a missing permission, a wrong argument
//	the connection            ErrRefused, ErrLogin                 a wrong password, an expired token
//	the moment                ErrRefused, ErrUnavailable           a start, an election, a full memory
//	no connection was made    ErrRefused, ErrUnavailable,          a wrong address
//	                          ErrUnreachable
//
// Only the first class is an answer about the lock. An error without ErrRefused leaves unknown
// whether the request was carried out. Such an error can be of one of the last three classes too:
// it then has only the other marks of the class.
//
//	the server refuses        first request   wait       renewal    release
//	the request               the error       the error  repeated   the error, repeated in the background
//	the connection            the error       goes on    repeated   the error, repeated in the background
//	the moment                see WithRetry   goes on    repeated   repeated for the release timeout
//	no connection was made    see WithRetry   goes on    repeated   repeated for the release timeout
//	none of these             the error       goes on    repeated   repeated for the release timeout
//
// A hold ends by time, or when the server says so. No error of a renewal ends a hold. A release
// is repeated until the hold's time is over, whatever the error. The exceptions are
// locks.ErrForeign and locks.ErrLost: they say that the hold no longer has the lock.
var (
	// ErrRefused is matched by the errors of a [Store] after which a request was surely not carried
	// out. The server answered with an error, or was never reached. After any other error the
	// outcome is unknown, except after an error matching locks.ErrForeign.
	ErrRefused = errors.New("refused by the store")

	// ErrLogin is matched by errors of a [Store] that refuse the connection and not the request.
	// The server does not accept the password, the token or the certificate. The lock may be free
	// or held. Waiters wait on, because credentials are replaced while programs run. A first
	// request returns the error, because the configured password may be wrong.
	ErrLogin = errors.New("the store refuses the login")

	// ErrUnavailable is matched by errors of a [Store] that are temporary. Examples are the
	// errors of a server that is starting, of a cluster that elects a master, or of a pool
	// without a free connection. Acquisitions retry after them, see lease.WithRetry.
	ErrUnavailable = errors.New("the store is not available now")

	// ErrUnreachable is matched by errors that say that no connection to the store could be made.
	// They match [ErrUnavailable] too. The store's address may be wrong.
	ErrUnreachable = errors.New("the store cannot be reached")

	// ErrUnanswered is matched by the error of a Renew that has sent more than one request for a
	// hold. One of them was answered, and renewed the hold. Another request is without an answer,
	// and may still be carried out.
	ErrUnanswered = errors.New("another request is without an answer, and may still be carried out")
)

// Store is the interface of an adapter: the protocol of one kind of lock, over one client of its
// server. Each method is one request, or a few. A Store keeps no state of holds: lease.Client does.
//
// A Store never acquires, prolongs or releases anything for an acquisition that it was not given.
//
// All methods may be called concurrently. They return when ctx ends at the latest, if the
// server's client allows that. A lease.Client keeps its promises on time even if the methods do not
// return by then. Errors need no prefix: the Client adds the adapter's (see [WithErrorPrefix]),
// the operation and the lock's name.
//
// A Store may implement further interfaces. lease.New looks for them:
//
//	Queue             waiters have places in the server's queue: locks go in order of arrival,
//	                  or a release wakes one waiter
//	LossNotifier      a hold is lost when the store learns of it, not at the next renewal
//	Session           holds last as long as a session with the server, which sets their time
//	ContentionProber  local hand-offs go on beyond their limit while nobody else wants the lock
//	Breaker           Mutex.ForceUnlock works
//	Inspector         Mutex.Inspect works
//	Announcer         Mutex.Inspect describes holders whose holds lack the room for a description
//	BatchReleaser     Close releases thousands of holds in a moment
//	ReleaseHeedsDeadline
//	                  an unlock needs no goroutine of its own
type Store interface {
	// Acquire asks once for a lock, without waiting. It does not repeat a request that may have
	// been carried out. A reply is the server's decision, and an error says that the decision is
	// unknown.
	//
	// An error matching locks.ErrForeign says that something other than a lock is under the name.
	// An error matching [ErrRefused] says that nothing was done. After any other error the Client
	// calls Lookup.
	Acquire(ctx context.Context, req Request) (Reply, error)

	// Lookup asks whether the acquisition of req holds the lock, after an Acquire of req whose
	// outcome is unknown.
	Lookup(ctx context.Context, req Request) (Reply, error)

	// Renew makes each hold last for ttl from now, and reports for each hold whether it does.
	// Renew never acquires a lock anew. If it fails for some of the holds, it returns the error,
	// and true for the others. If it has renewed a hold while another of its requests for the hold
	// is without an answer, it returns true for the hold, and an error matching [ErrUnanswered]: a
	// late request must not shorten a later extension without the Client's knowledge.
	Renew(ctx context.Context, holds []HoldID, ttl time.Duration) ([]bool, error)

	// Release frees the lock if id holds it. It may be repeated, even long after an earlier
	// Release, and may be called for an acquisition that never had the lock.
	//
	// An error matching locks.ErrLost says that the lock was not held until now, such as after
	// the end of the connection that held it. Such an error is final, and so is an error matching
	// locks.ErrForeign. After any other error the Client repeats the request, see [ErrRefused].
	Release(ctx context.Context, id HoldID) (Released, error)

	// Watch begins to notify the acquisition of id when the lock may have become free for it. Once
	// the Client has the watch, it asks again, so that it misses no release in between. The Client
	// need not ask again after an answer with [Reply.Listening]. A notification may come without a
	// reason. A lost notification costs the poll interval, see lease.WithPoll. A store that cannot
	// notify returns nil. Its waiters ask at a tenth of the poll interval.
	//
	// An acquisition has one Watch at a time. The Client closes a Watch before it begins the
	// next.
	Watch(ctx context.Context, id HoldID) (Watch, error)
}

// HoldID names an acquisition of a lock, and the hold that it leads to.
type HoldID struct {
	// Name is the name of the lock.
	Name string
	// Acquisition is the name of the acquisition. No other acquisition of any process has this
	// name, at any time.
	Acquisition string
}

// Request asks for a lock. All requests of one acquisition are equal, except for TTL.
type Request struct {
	// HoldID names the lock and the acquisition.
	HoldID
	// TTL is the time for which the store gives the lock, counted from the server's decision.
	TTL time.Duration
	// Permits is the number of permits that the request asks for, and Size is the size of the
	// semaphore. Both are 0 for a lock, which is one permit of one: see [Request.Weigh].
	Permits, Size int64
	// Writer is set for the read half of a read-write lock if the owner holds the write half.
	// Writer is the acquisition of the hold of the write half, which stays until a request to
	// release it. See lease.RWMutex.
	Writer string
	// Data belongs to the adapter. It is the value of [WithData], or nil. A Store that gives a
	// request to another Store of its adapter may set Data, instead of a value in the context.
	Data any
}

// Weigh returns the number of permits that the request asks for, and the size. A lock counts as
// one permit of one.
func (r Request) Weigh() (permits, size int64) {
	if r.Size == 0 {
		return 1, 1
	}
	return r.Permits, r.Size
}

// Reply is a store's answer to a request for a lock.
type Reply struct {
	// Held says that the acquisition holds the lock.
	Held bool
	// Token is the fencing token of the hold, or 0 if the store does not give tokens.
	Token uint64
	// Wait is the time for which the lock will not be free unless it is released, or 0 if this
	// time is unknown.
	Wait time.Duration
	// Since is the time, by [Now], from which the store counts the lease. It is set if it is
	// before this request, because the hold is part of a session that existed already.
	Since time.Time
	// Listening says that the acquisition's notifications were on before this request was sent.
	// Then the Client skips the extra request after Watch.
	Listening bool
	// Settled is for answers of Lookup that the acquisition does not hold the lock. It says that
	// the answer is final: no earlier request of the acquisition can be carried out any more. The
	// Client then has nothing to undo.
	Settled bool
	// Reason, if not nil, says why the store refuses a lock that may be free. It is the error of
	// an acquisition that does not wait. If a wait ends after such a reply, the error of the
	// waiter matches Reason as well.
	Reason error
}

// Released is a store's answer to the release of a lock.
type Released struct {
	// Held says that the acquisition held the lock until now.
	Held bool
	// Settled says that no earlier request of the acquisition can take the lock any more, see
	// [Reply.Settled]. A store that cannot tell leaves it false. The Client asks such a store again
	// while a late request may come, and Client.Close counts the acquisition.
	Settled bool
	// Awaited says that others may be waiting for the lock. A store that cannot tell always sets
	// Awaited. The next local waiter then lets the others go first. A [Queue] in order of arrival
	// need not set Awaited, because its order does the same.
	Awaited bool
}

// Watch notifies one waiter.
type Watch interface {
	// C delivers notifications. It is never closed.
	C() <-chan struct{}
	// Close ends the watch.
	Close()
}

// Queue is an optional interface of a [Store] that keeps a place for each waiter. A store may
// serve its waiters in order of arrival. It may also use the places only to wake one waiter at a
// time, and give the lock to the first request. A semaphore wakes as many waiters as there are
// permits for.
type Queue interface {
	// Enqueue is Acquire for an acquisition that will wait. If the lock is refused, the
	// acquisition has a place in the queue. It keeps the place as long as it asks again, until it
	// has the lock or leaves. If a place is lost, such as with its session, the next Enqueue
	// takes a new place. Acquire leaves no place, nor does an Enqueue whose error matches
	// ErrRefused or locks.ErrForeign. A place that an earlier Enqueue of the acquisition has left
	// stays.
	Enqueue(ctx context.Context, req Request) (Reply, error)

	// Leave gives the acquisition's place up, if it has one. It may be repeated.
	Leave(ctx context.Context, id HoldID) error
}

// Session is an optional interface of a [Store] whose locks last as long as a session with its
// server. The server decides for how long that is, and a lock does not end by itself when its
// hold ends here.
type Session interface {
	// Term returns how long the session lasts without a sign of life. A hold lasts at most for this
	// time after it was acquired or extended, and for this time after a renewal: lease.WithTTL is
	// ignored.
	Term() time.Duration

	// Lost is called for each hold that was lost, after its owner was told. It is also called for
	// an acquisition that was given up, if the store does not confirm its end within a lease. It
	// may be called again for the same acquisition. The store frees what the session may keep.
	// Lost is called from any goroutine and must not wait.
	Lost(id HoldID)
}

// Breaker is an optional interface of a [Store] that can free a lock without its holder's
// consent.
type Breaker interface {
	// Break frees the lock called name, wakes its waiters, and reports whether it was held. If
	// something other than a lock is under the name, it changes nothing and returns an error
	// matching locks.ErrForeign.
	Break(ctx context.Context, name string) (bool, error)
}

// LossNotifier is an optional interface of a [Store] that can learn by itself that a hold has
// ended. An example is the end of a session with its server.
type LossNotifier interface {
	// NotifyLoss is called once, before anything else. The store calls lost for a hold that has
	// surely ended. The hold is lost when lost returns. cause, if not nil, is joined with
	// locks.ErrLost.
	//
	// The store may call lost from any goroutine and at any time, even before it has returned the
	// reply that gives the hold. Then the Client gets a hold that is lost. The call does not
	// wait, and ignores unknown holds.
	NotifyLoss(lost func(id HoldID, cause error))
}

// ContentionProber is an optional interface of a [Store] that can tell whether other clients wait
// for a held lock.
type ContentionProber interface {
	// Contended reports whether any waiter outside of this client's local queue may be waiting
	// for the lock called name. It may return true without a reason, and may overlook waiters
	// without a Watch.
	Contended(ctx context.Context, name string) (bool, error)
}

// ReleaseHeedsDeadline is an optional interface of a [Store] whose Release does not outlast the
// deadline of its context. The goroutine of an unlock then sends the first request itself.
// Otherwise another goroutine sends the request, so that an unlock ends in time. The switch to the
// other goroutine and back can take as long as the request.
type ReleaseHeedsDeadline interface {
	// ReleaseHeedsDeadline reports whether Release always returns by the deadline of its context.
	// Release may ignore a cancellation of the context before.
	ReleaseHeedsDeadline() bool
}

// BatchReleaser is an optional interface of a [Store] that can release many holds by one request,
// or by a few. Client.Close uses ReleaseAll for the client's holds: a hundred in each call,
// with several calls under way. Without it, each hold takes a request.
type BatchReleaser interface {
	// ReleaseAll is Release of each of ids, when all holds of the Client and its [Group] have ended
	// here. The store may not have answered an earlier Release of an id. ReleaseAll reports for
	// each of ids whether the store has answered: then the acquisition does not hold the lock any
	// more. ReleaseAll reports true too where Release returns locks.ErrForeign or locks.ErrLost. If
	// ReleaseAll fails for some of ids, it returns the error, and true for the others. It may be
	// repeated.
	//
	// A store whose holds all end with a session may end the session.
	ReleaseAll(ctx context.Context, ids []HoldID) ([]bool, error)
}

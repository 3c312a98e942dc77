// Package lease is the client's part of every lock on a store. It has the local queue, re-entry,
// renewal, timely notice of losses, fencing tokens, and the undoing of requests that took effect
// too late. An adapter adds its protocol as a [driver.Store].
//
// Users get a [Client]'s locks from an adapter, such as package redislock. Authors of stores read
// package driver.
//
// # Local queue
//
// All goroutines of a process that want one name wait in a local FIFO queue. The first of them
// asks the store, or finds the store's lock in the process already. The lock is there if an owner
// has released it while others waited locally: the owner hands the lock off, see
// [WithMaxLocalHandoffs]. An owner that has extended its hold to less than half of a lease gives
// the lock back to the store, so that the next owner gets a whole lease. If other clients wait
// when the lock goes back to the store, the next local owner asks a little later. So the other
// clients have their turn. Re-entry takes no request. The owners of a [WithShared] lock do not
// wait for each other locally.
//
// # Time
//
// A hold is valid until the send time of the last request that acquired or prolonged it, plus the
// lease, minus a margin. The store began to count at that time or later. Therefore it does not
// give the lock to another owner during the validity. Only durations of a monotonic clock are
// used. The clocks of other machines do not matter, and neither does a change of the local wall
// clock.
//
// At the end of validity the hold is lost: [locks.Hold.Lost] is closed. Every operation of the
// holder returns [locks.ErrLost] until the holder has released the lock. A lost hold stays lost,
// also if a late reply says that it was prolonged. An extension that meets the release asks for
// nothing: the next owner may have the lock already.
//
// [locks.Hold.Err] compares the clock itself. Therefore Err is right on the first line after the
// process was stopped. On Linux Err also notices a suspension of the machine: while the monotonic
// clock stands still, CLOCK_BOOTTIME goes on, see [driver.Now]. Lost is then closed by Err, or at
// the next renewal.
//
// Three cases remain. On other systems a suspension does not count, unless their monotonic clock
// goes on. A virtual machine that its host pauses or restores learns nothing from its own clocks.
// A holder can be stopped between Err and its next line. Against all three, the resource checks
// the fencing token, see package fence.
//
// # Renewal
//
// A hold without a fixed lease is renewed each third of its lease. One goroutine renews all holds
// of a client, in batches. A request that failed is repeated after a thirtieth of the lease. A
// slow request does not delay the next request, so that a hold stays while replies take less than
// two thirds of the lease. A renewal that finds the hold gone makes it lost at once.
//
// # Unknown outcomes
//
// A request without a reply may have been carried out, or may be carried out later. The client does
// not repeat an acquisition in this case: it asks the store whether the acquisition holds the lock.
// If the answer is unknown, the request may have taken the lock. The client releases that lock in
// the background, for a lease at most and with growing pauses.
//
// The requests of an acquisition that waits in a store's queue have one name. A late request of
// this acquisition gives the hold its first lease again. Therefore an extension by more than the
// first lease counts as an extension by the first lease, until no request can come late any more.
//
// If the first request of LockContext fails, LockContext asks again only after an error that passes
// ([RetryPassing]), unless [WithRetry] says otherwise. After a failure of a later request it asks
// again, unless the store has refused the request for good.
//
// A caller whose ctx ends while a request is in flight gets ctx's error at once. The answer to that
// request decides whether the client must undo anything, and ends the undoing. If the answer takes
// longer than 50 ms, the undoing begins without it.
//
// A release is repeated until the store answers, but its caller waits at most for the release
// timeout. If the store refuses the release, the caller does not wait: examples are a missing
// permission, and a login that is not accepted. In both cases the caller gets an error matching
// [locks.ErrLost]. The release goes on in the background, with growing pauses, until the lease has
// ended in the store. The store began to count before it answered: for this end the lease counts
// from the answer.
//
// Each acquisition has a name of its own in the store. Therefore a late request of an earlier
// acquisition does not affect a later hold.
package lease

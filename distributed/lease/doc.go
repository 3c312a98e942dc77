// Package lease is the client's part of every lock on a store. It has the local queue, re-entry,
// renewal, losses told in time, fencing tokens, and the undoing of what came too late. An adapter
// adds its protocol as a [Store].
//
// # How to add a store
//
//  1. Implement [Store]: five requests to the server, without state of holds. Its documentation
//     lists the optional interfaces and what each of them brings. The example of Store is a
//     complete one, in memory.
//  2. Mark errors with [ErrRefused], [ErrLogin] and [ErrUnavailable] where the server's answer
//     permits it, see [Mark]. A store without marks is correct, but slower after errors.
//  3. Give the Store to [New], with [WithErrorPrefix], [WithPlace] and the adapter's defaults. An
//     adapter with several kinds of lock keeps one [Client] for each kind in a [Group].
//  4. Run package leasetest on the Store: several clients, and faults between them and the server.
//     Run package lockstest on one lock. Do both on each topology of a real server.
//
// The page docs/guides/stores.md leads from an empty file to an adapter that is proved. It says
// which methods are called late, how a hold may end, and what waiting costs.
//
// # Local queue
//
// All goroutines of a process that want one name wait in a local FIFO queue. The first of them
// asks the store, or finds the store's lock in the process already. That is so if an owner has
// released the lock while others waited locally: it hands the lock off, see
// [WithMaxLocalHandoffs]. When the lock goes back to the store, and others wait there, the next
// local owner asks a little later, so that they have their turn. Re-entry takes no request. The
// owners of a [WithShared] lock do not wait for each other locally.
//
// # Time
//
// A hold is valid until the send time of the last request that acquired or prolonged it, plus the
// lease, minus a margin. The store began to count at that time or later. So it does not give the
// lock to others before. Only durations of a monotonic clock are used. No clock of another
// machine matters, and no setting of the local one.
//
// At the end of validity the hold is lost: [locks.Hold.Lost] is closed, and every operation of
// the holder returns [locks.ErrLost] until it has released the lock. A lost hold stays lost, also
// if a late reply says that it was prolonged.
//
// [locks.Hold.Err] compares the clock itself. So it is right on the first line after the process
// was stopped. On Linux that includes a suspension of the machine: while the monotonic clock
// stands still, CLOCK_BOOTTIME goes on, see [Now]. Lost is then closed by Err, or at the next
// renewal.
//
// What remains: on other systems a suspension does not count, unless their monotonic clock goes
// on. A virtual machine that its host pauses or restores learns nothing from its own clocks. And
// a holder can be stopped between Err and its next line. Against all of these, the resource
// checks the fencing token, see package fence.
//
// # Renewal
//
// A hold without a fixed lease is renewed each third of its lease. One goroutine renews all holds
// of a client, in batches. A request that failed is repeated after a thirtieth. A slow one is
// followed by the next in its turn, so that a hold stays while replies take less than two thirds
// of the lease. A renewal that finds the hold gone makes it lost at once.
//
// # Unknown outcomes
//
// A request without a reply may have been carried out, or may be later. An acquisition is not
// repeated then: the client asks the store which acquisition holds. If that is unknown, the
// client releases in the background what the request may have taken, for a lease at most and with
// growing pauses.
//
// A caller whose ctx ends while a request is in flight gets its error at once. The answer to that
// request decides what is undone, and ends the undoing. If the answer takes longer than 50 ms,
// the undoing begins without it.
//
// A release is repeated until the store answers, but its caller waits at most for the release
// timeout. If the store refuses the release, the caller does not wait: examples are a missing
// permission, and a login that is not accepted. In both cases the caller gets an error matching
// [locks.ErrLost], and the release goes on in the background, with growing pauses, until the lease
// has ended.
//
// Each acquisition has a name of its own in the store. So late requests of an earlier one do
// nothing to a later hold.
package lease

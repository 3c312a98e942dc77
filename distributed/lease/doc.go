// Package lease is what every lock on a store needs in the process that uses it, once: a local gate,
// re-entry, renewal, the loss of a lock told in time, fencing tokens, undoing what came too late. An
// adapter adds its protocol as a [Store].
//
// # Gate
//
// All goroutines of a process that want one name queue at a local gate, a FIFO lock with owners. Who has
// the gate asks the store, or finds the store's lock in the process already: whoever releases it
// while others wait at the gate leaves it to the first of them, at most [WithMaxLocalHandoffs] times in
// a row and for a quarter of the lease, and gives it back to the store then: sooner if others wait for it
// there, when those have had it who waited here already. In that case the next one here asks for it a little
// later, so that they get their turn. Re-entry is a matter of the gate alone.
// The owners of a [Shared] lock have a gate each.
//
// # Time
//
// A hold is valid until the send time of the last request that took or prolonged it, plus the lease, less
// a margin. The store began to count at that time or later, and so does not give the lock to
// anybody else before. Only monotonic local time and durations are used: no clock of
// another machine matters, and none of ours that can be set.
//
// At the end of validity the hold is lost: [locks.Hold.Lost] is closed, and whatever is asked of the
// lock by its holder from then on is answered with [locks.ErrLost], until the holder has
// released it. [locks.Hold.Err] compares the clock itself, so that a process that was paused cannot see an
// old answer. Once lost, a hold stays lost, also if a late reply says that it was prolonged.
//
// # Renewal
//
// A hold without a lease time of its own is renewed each third of the lease, by one
// goroutine for all holds of a client, in batches. A request that failed is repeated after
// a thirtieth; one that is slow is followed by the next in its turn, so that a hold stays as long as
// replies take less than two thirds of the lease. A renewal that finds the hold gone makes it
// lost at once.
//
// # What is unknown
//
// A request whose reply did not come may have been carried out, or be so later. An acquisition is not repeated then;
// the client asks the store who holds. If that is not the asker, or unknown, the client goes on to release
// what the request may have taken, for a lease, ever more rarely. A caller whose ctx ends while a request is in flight gets its
// error at once; should the request succeed, it is undone, and after a twentieth of a second without an answer
// without waiting for one. A release is repeated until the store has answered or the lease is over, for
// longer than the release timeout without the caller. Each acquisition has a name of its own in the store, so that
// requests of an earlier one that arrive late do nothing to a later hold.
package lease

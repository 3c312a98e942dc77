// Package syncq is the queued synchronizer under the locks of this module: what
// AbstractQueuedSynchronizer is to java.util.concurrent.locks. A lock adds its fast path,
// its owner, and its errors; how parties wait, who comes next, what a cancellation leaves
// behind, and how a condition moves its waiters are decided here, once, for
// exclusive and shared holds and for both policies.
//
// # State
//
// A lock is one word, a queue, and a guard. The word says who holds, or how many, and
// whether the queue needs looking at; its legal values are a table in word.go. The
// uncontended lock and unlock are a compare-and-swap of the word each and touch nothing else.
//
// The queue is a doubly linked list of the waiting parties in order of arrival, guarded by
// a sync.Mutex. The guard is held for a few dozen instructions at a time, never while anybody
// waits or user code runs. It was preferred to a lock-free queue because leaving from
// the middle is then an ordinary removal: nothing is left for others to step over or clean
// up, and what inspection shows is exact. (Cancellation in lock-free CLH queues
// is where the JDK found most of its bugs in this field.)
//
// # FIFO
//
// The lock is handed over directly: a release with the queue not empty makes the first
// waiter the holder in the same compare-and-swap that ends the old hold, takes it out
// of the queue, and unparks it. The lock is thus never free while anybody waits, so a fast
// path that only takes a free lock cannot overtake anybody, and needs no look at the queue to
// be fair. If that pays, the waiter behind the new holder is woken as well, and spins until it is its turn: see
// pace.go.
//
// # NonFair
//
// A release frees the word, and if there are waiters and none of them is on its way already,
// which the flag woken tells, rouses the first. That one races for the lock with whoever
// comes along. If it loses, it clears woken and sleeps again, still first; the next
// release rouses it again. After too many losses or too long a wait it sets handoff, and the next
// release treats the lock as FIFO does. Whoever is first then has waited long as well if
// the queue is long, and is handed the lock in turn: so the queue drains, and
// barging begins anew.
//
// Shared waiters that are first are not told but let in, all of a group, by the release of a lock that has
// visible readers: newcomers may share the lock with them at once, whereas next to a free lock with a shared
// waiter on its way each would have to look at the queue.
//
// # Why no wake-up is lost
//
// Claim: if a party sleeps in the queue, then somebody holds the lock or some awake
// party is bound to rouse or grant the first in the queue.
//
//   - A party enters the queue only if, with the guard held, it saw a word that it could not
//     take and left queued set on it by compare-and-swap. Under FIFO that word is held. Under
//     NonFair it is held, or free and woken.
//   - A held word with queued set is not freed by a fast path, whose compare-and-swap expects
//     no flags. The slow one grants (FIFO, handoff), or sets woken as it frees the word and
//     then rouses the first (NonFair), unless woken was set, in which case another
//     party has that duty.
//   - The duty that woken stands for ends in one of five ways, each with the guard held or on a
//     held word: the first waiter takes the lock, and its release is next; it finds the word
//     held and clears woken in one compare-and-swap with that finding, and the holder's
//     release is next; a broadcast puts handoff in its place on a held word, so that the holder's
//     release is next as well, and grants; it leaves by cancellation and rouses the one behind it; or it
//     was the last, and the flags go.
//   - Between the finding and its sleep the waiter may be roused again. It goes to
//     sleep by a compare-and-swap on its own state, which that makes fail: see node.go.
//   - A release that has freed the word but not yet got the guard finds, when it has it, the first
//     waiter of that time, whoever that is. Rousing one that need not be roused is harmless: it
//     looks and sleeps again.
//
// # Cancellation
//
// A wait can end by a grant or by its limit. Both are decided with the guard held: a grant
// takes the node out of the queue, and so does a cancellation, so the second comes too
// late. What the leaver was in the way of then happens: if it was first, a pending
// wake-up passes to the next, and shared waiters behind an exclusive one join shared
// holders.
//
// # Readers
//
// The shared holds of a read-write lock belong to owners, and are many and short. They are kept in
// a table beside the word, which they leave alone while nobody writes: see readers.go.
//
// # Conditions
//
// A condition has a list of its own under the same guard. A signal moves the first node
// to the lock's queue without waking anybody; a time-out or a context moves the node there as
// well, if it still is in the condition's list. That decides, once, which of the two it
// was. The node then waits for the lock like any other, without limit.
//
// # Memory order
//
// Everything a holder did happens before what the next one does: over the word, by
// its compare-and-swap on both sides, or, for a party that was granted the lock, over the guard
// and its parking place. sync/atomic is sequentially consistent, and the race detector knows
// all three.
package syncq

// Package syncq is the queued synchronizer under the locks of this module: what
// AbstractQueuedSynchronizer is to java.util.concurrent.locks. A lock adds its fast path, its owner
// and its errors. How goroutines wait, which waiter is next, what a cancellation leaves behind, and
// how a condition moves its waiters is decided here, once, for exclusive and shared holds and for
// both policies.
//
// # Types
//
//	Word       the state word: its flags, and the changes of it that need no look at the queue
//	Sync       a Word, the queue of its waiters, and the hand-off between holders
//	Reentrant  a Sync, and how often the goroutine that holds it has entered it again
//	ReadWrite  a Reentrant, and the goroutines that read
//	Cond       the queue of a condition of a Sync
//
// Each one contains the one above it, and owns the rest of its state. Two fields of a ReadWrite lie
// elsewhere. The pointer to its table is in Sync, because a release looks at it. The count of the
// writer's reads is in Reentrant, where there is room. A lock without owners has a Sync. Five files
// tell a hand-off: that of the lock, sync.go, wait.go, word.go, and barge.go.
//
// # State
//
// A lock is one word, a queue, and a guard. The word names the holder, or counts the holders, and
// its flags mirror the queue. The table of its legal values, and the rule of each flag, are in
// word.go. The table of a waiter's states, and of the steps between them, is in wait.go. The
// uncontended lock and unlock are a compare-and-swap of the word each, and touch nothing else.
//
// A lock has one policy, which [New] sets. Package fair has locks whose zero value is FIFO: each
// party that may have to wait says so.
//
// The queue is a doubly linked list of the waiters in order of arrival, guarded by a
// sync.Mutex. The guard is held for a bounded number of instructions, never while a goroutine
// waits or user code runs. A waiter that gives up is simply removed, and what inspection shows
// is exact. A lock-free queue would leave nodes for others to step over. (Cancellation in
// lock-free CLH queues is where the JDK found most of its bugs in this field.)
//
// # The duty to wake
//
// Every change that may concern a waiter goes through one function, advance. It installs the
// next word, and admits the waiters which that word lets in. It wakes the waiter that has to
// race for the lock, and gives the read table's hold back if nobody reads. The invariants that
// it keeps stand on it, and with them the reason why no wake-up is lost.
//
// # FIFO
//
// The lock is handed off. A release with waiters makes the first one the holder in the same
// compare-and-swap that ends the old hold. It takes the waiter out of the queue, and unparks
// it. The lock is never free while a goroutine waits. A fast path that only takes a free lock
// therefore overtakes nobody, and need not look at the queue.
//
// # NonFair
//
// A release frees the word, and wakes the first waiter unless that is awake. The waiter races for
// the lock with goroutines that come along. If it loses, it sleeps again, still first. After too
// many losses or too long a wait, or if it waits for readers, the lock is reserved for it. A holder
// that takes the lock past an awake waiter counts, and now and then reserves the lock for a waiter
// that has waited for too long: see Barged. Without that a waiter that has no processor is
// overtaken for a time slice. No reader that comes overtakes a waiter with a reservation, and the
// next release hands the lock off as under FIFO. A releaser that hands the lock to a sleeping
// writer yields its processor to it. If the next waiter has waited for too long as well, the lock
// is reserved for that one in turn: so a long queue drains, and barging begins anew.
//
// Shared waiters do not race. When they are first, the next release grants the lock to all of the
// group, or sends them. It sends them if only readers wait: they leave the queue, and each of them
// asks for the lock as a newcomer does when it runs. The lock is free meanwhile. Otherwise the next
// writer would wait until each reader has a processor, and each goroutine that comes meanwhile
// would park. If a writer waits behind the readers, they are granted the lock, because the writer
// would be woken with them and could overtake them. A reader that was sent in vain too often, or
// has waited for too long then, is not sent again: the next release grants the lock to its group.
//
// A waiter's swap that fails ends nothing. The word has changed, the waiter is awake still, and it
// looks again. Only a swap that succeeds takes the lock, or puts the waiter to sleep on a word that
// says so.
//
// # Cancellation
//
// A wait ends by a grant or by its limit. Both happen with the guard held: a grant takes the
// node out of the queue, and so does a cancellation, so the second of the two comes too late. A
// first waiter that leaves calls advance: a wake-up that it had goes to the next waiter, and
// shared waiters behind an exclusive one join shared holders. A wait that the watcher refuses ends
// in the same way.
//
// # Readers
//
// The shared holds of goroutines in a read-write lock are kept in a table next to the word. The
// first reader of a free lock has a place of its own there. While the lock is biased to readers,
// they leave the word alone: see table.go. The table has a shared hold of its own then, which Sync
// gives back when its readers are gone. Everything else about readers is in [ReadWrite].
//
// # Explicit owners
//
// Several goroutines may act for one explicit owner. They share its holds in a layer above the
// engine, package shares, which asks the engine once for each owner. The engine knows one thing of
// them: a waiter may be dismissed from the queue because its owner has the lock ([Waiter.Dismiss]).
//
// # Conditions
//
// A condition has a queue of its own under the same guard. A signal moves the first node to the
// lock's queue without waking its waiter. A time-out or a context moves the node there as well,
// if it still is in the condition's queue. That decides, once, which of the two it was. The
// node then waits for the lock like any other, without a limit. A signal that no goroutine waits
// for is a load of an atomic count: see [Cond].
//
// # Memory order
//
// Everything that a holder did happens before what the next one does. The compare-and-swaps of the
// word see to that. For a waiter that was granted the lock, the guard and its parking place do.
// sync/atomic is sequentially consistent, and the race detector knows all three.
//
// # Model
//
// The folder model has this protocol in Promela, function by function. Its run.sh searches all
// schedules of small cases, and shows that each of a list of one-line mistakes breaks a property.
// A change of the protocol changes the model as well: see model/README.md.
package syncq

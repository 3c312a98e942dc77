// Package syncq is the queued synchronizer under the locks of this module, as
// AbstractQueuedSynchronizer is under Java's. A lock adds its fast path, its owner and its errors.
// Package syncq decides the rest once, for exclusive and shared holds and for both policies. It
// decides how goroutines wait, which waiter is next, how a cancelled waiter leaves the queue, and
// how a condition moves its waiters.
//
// # Types
//
//	Word       the state word: its flags, and the changes of it that need no look at the queue
//	Sync       a Word, the queue of its waiters, and the hand-off between holders
//	Reentrant  a Sync, and how often the goroutine that holds it has entered it again
//	ReadWrite  a Reentrant, and the goroutines that read
//	Tallied    a Sync, and a tally of the holds of a lock without owners that goroutines share
//	Cond       the queue of a condition of a Sync
//
// A Reentrant contains a Sync, and a ReadWrite contains a Reentrant; each type owns the rest of its
// state. Two fields of a ReadWrite lie elsewhere. The pointer to its table is in Sync, because a
// release looks at it. The count of the writer's reads is in Reentrant, where there is room. A lock
// without owners has a Sync or a Tallied. Five files tell a hand-off: the lock's own file, sync.go,
// wait.go, word.go, and barge.go.
//
// # State
//
// A lock is one word, a queue, and a guard. The word names the holder, or counts the holders, and
// its flags mirror the queue. The table of its legal values, and the rule of each flag, are in
// word.go. The table of a waiter's states, and of the steps between them, is in wait.go. The
// uncontended lock and unlock are a compare-and-swap of the word each, and touch nothing else.
//
// A lock has one policy, which [New] sets. Package fair has locks whose zero value is FIFO: each
// party that may wait says so, by [Party.FIFO].
//
// The queue is a doubly linked list of the waiters in order of arrival, guarded by a sync.Mutex.
// The guard is held for a bounded number of instructions, never while a goroutine waits or user
// code runs. A waiter that gives up is simply removed, so an inspection shows exactly the waiters.
// In a lock-free queue the node of such a waiter would stay, and other goroutines would step over
// it. The JDK found most of its bugs of this field in the cancellation of lock-free CLH queues.
//
// # The duty to wake
//
// Every change that may concern a waiter goes through one function, advance. It installs the next
// word, and admits the waiters which that word lets in. It wakes the waiter that must race for the
// lock, and gives the read table's hold back if nobody reads. The invariants that it keeps stand on
// it, and with them the reason why no wake-up is lost.
//
// # FIFO
//
// The lock is handed off. A release with waiters makes the first waiter the holder, in the same
// compare-and-swap that ends the old hold. The release also takes the waiter out of the queue, and
// unparks it. The lock is never free while a goroutine waits. A fast path that only takes a free
// lock therefore overtakes nobody, and need not look at the queue.
//
// # NonFair
//
// A release frees the word, and wakes the first waiter unless that waiter is awake. The waiter
// races for the lock with goroutines that come along. If the waiter loses, it sleeps again, still
// first. After too many losses or too long a wait, or if it waits for readers, the lock is reserved
// for it. A holder that takes the lock past an awake waiter adds to a count. Now and then the
// holder reserves the lock for a waiter that has waited for too long: see Barged. Otherwise holders
// could overtake a waiter without a processor for a whole time slice. New readers do not overtake a
// waiter with a reservation, and the next release hands the lock off as under FIFO. A goroutine
// that hands the lock to a sleeping writer yields its processor to the writer. If the next waiter
// has waited for too long as well, the lock is reserved for this waiter in turn. So a long queue
// drains, and barging begins anew.
//
// Shared waiters do not race. When a group of shared waiters is first, the next release grants the
// lock to the whole group, or sends all of its readers. The release sends the readers if no writer
// waits. Sent readers leave the queue, and each of them asks for the lock as a newcomer does when
// it runs. The lock is free meanwhile. If the readers were granted the lock instead, the next
// writer would wait until each reader has a processor. Each goroutine that comes meanwhile would
// park. If a writer waits behind the readers, they are granted the lock, because the writer would
// be woken with them and could overtake them. A reader that was sent in vain MaxLost times is not
// sent again. The next release grants the lock to the group of that reader. How long a reader has
// waited does not count: most of that time the reader waits for a processor, and if it were granted
// the lock, all others would wait for this processor too.
//
// A waiter's swap that fails ends nothing. The word has changed, the waiter is awake still, and it
// looks again. Only a swap that succeeds takes the lock, or puts the waiter to sleep on a word that
// says so.
//
// # Cancellation
//
// A wait ends by a grant or by its limit. Both happen with the guard held. A grant takes the node
// out of the queue, and so does a cancellation: the second of the two comes too late. A first
// waiter that leaves calls advance. A wake-up of the leaving waiter goes to the next waiter. Shared
// waiters behind an exclusive waiter that leaves join shared holders. A wait that the watcher
// refuses ends in the same way.
//
// # Readers
//
// The shared holds of goroutines in a read-write lock are kept in a table next to the word. The
// first reader of a free lock has a place of its own there. While the lock is biased to readers,
// they leave the word alone: see table.go. The table has a shared hold of its own then, which Sync
// gives back when its readers are gone. Everything else about readers is in [ReadWrite].
//
// A read-write lock without owners is a [Tallied]. Its readers only have to be counted, so they
// add to a word of their own until a goroutine has to wait.
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
// lock's queue without waking its waiter. A time-out or a context moves the node there as well, if
// the node still is in the condition's queue. The move out of the condition's queue decides, once,
// whether the signal or the limit ended the wait. The node then waits for the lock like any other,
// without a limit. A signal that no goroutine waits for is a load of an atomic count: see [Cond].
//
// # Memory order
//
// Everything that a holder did happens before everything that the next holder does. The
// compare-and-swaps of the word order the two holders. If the next holder is a waiter that was
// granted the lock, the guard and the parking place of the waiter order them. Package sync/atomic
// is sequentially consistent, and the race detector knows all three.
//
// # Model
//
// The folder model has this protocol in Promela, function by function. Its run.sh searches all
// schedules of small cases, and shows that each of a list of one-line mistakes breaks a property.
// A change of the protocol changes the model as well: see model/README.md.
package syncq

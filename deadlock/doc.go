// Package deadlock tells who waits for whom among the locks of this module that have owners:
// [github.com/jucgo/locks/reentrant.Mutex], [github.com/jucgo/locks/rwlock.RWMutex] with its read holds,
// the locks of package named, and the local gates of leased locks.
//
//   - [Find] returns the cycles among those who wait, on demand. Java's
//     ThreadMXBean.findDeadlockedThreads.
//   - [Orphans] returns the locks whose owner has exited while others wait.
//   - [Refuse] makes the acquisition that would close a cycle fail instead of hang.
//   - [Record] makes the reports say where locks were taken.
//
// What it knows comes from the wait queues of the locks. Nothing is kept about locks that nobody
// waits for, and nothing that is kept holds a lock or a waiter in memory. An uncontended lock and unlock
// cost the same as without it; a wait costs no more while refusal and recording are off.
//
// # What a cycle is
//
// A party waits for the holders of the lock that it is in the queue of, or, as a reader that only a
// queued writer keeps out, for that writer. The cycles that these waits make are deadlocks, not
// orders of locks that might become one. A goroutine in a condition's queue waits for nobody; once it
// is signalled, or its time is up, it waits for the lock like any other.
//
// Two things can open a cycle from inside, and are said in it. A wait with a context or a time limit
// may end by that. And an explicit owner, which holds a lock and waits for another, may have
// one more goroutine that is about to release: nobody can tell. [Cycle.Certain]
// reports that neither is so.
//
// A goroutine that acts for two owners, itself and an explicit one, is two parties. Locks without owners, those
// of packages fair and spin and of the standard library, take no part, and neither does a cycle that
// leads through a channel.
package deadlock

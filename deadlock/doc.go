// Package deadlock finds cycles of waits among the locks of this module that have owners:
// [github.com/jucgo/locks/reentrant.Mutex], [github.com/jucgo/locks/rwlock.RWMutex] with its read
// holds, the locks of packages keyed and named, and the local gates of leased locks.
//
//   - [Find] returns the cycles among the waiters, on demand. Java's
//     ThreadMXBean.findDeadlockedThreads.
//   - [Orphans] returns the locks whose owner has exited while others wait.
//   - [Check] fails a test that ends with a cycle or an orphan.
//   - [Refuse] makes the acquisition that would close a cycle fail instead of hang.
//   - [Record] makes the reports say where locks were taken.
//
// It reads the wait queues of the locks. It keeps nothing about locks without waiters, and what it
// keeps holds no lock and no waiter in memory. An uncontended lock and unlock cost the same as
// without it. A wait costs no more while refusal and recording are off.
//
// # What a cycle is
//
// A waiter waits for the holders of the lock in whose queue it is. A reader that only a queued
// writer keeps out waits for that writer. The cycles of these waits are deadlocks, not orders of
// locks that might become one. A goroutine in a condition's queue waits for nobody. Once it is
// signalled, or its time is up, it waits for the lock like any other.
//
// Two things can open a cycle from inside, and the report says so. A wait with a context or a
// time limit may end by that. An explicit owner that holds a lock and waits for another may have
// one more goroutine that is about to release. [Cycle.Certain] reports that neither is so.
//
// A goroutine that acts for two owners, itself and an explicit one, is two parties. Locks without
// owners take no part: those of packages fair and spin and of the standard library. Neither does a
// cycle that leads through a channel.
package deadlock

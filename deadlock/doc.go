// Package deadlock finds cycles of waits among the locks of this module that have owners. These
// are [github.com/jucgo/locks/reentrant.Mutex], [github.com/jucgo/locks/rwlock.RWMutex] with its
// read holds, the locks of packages keyed and named, and the local queues of leased locks.
//
//   - [Find] returns the cycles among the waiters, on demand. Java's
//     ThreadMXBean.findDeadlockedThreads.
//   - [Orphans] returns the locks whose owner has exited while goroutines wait.
//   - [Check] fails a test that ends with a cycle or an orphan.
//   - [Refuse] makes the acquisition that would close a cycle fail instead of hang.
//   - [Record] adds to the reports where locks were acquired.
//
// The package reads the wait queues of the locks. It stores nothing about locks without waiters,
// and keeps no lock and no waiter alive. An uncontended lock and unlock cost the same as without
// it. A wait costs no more while refusal and recording are off.
//
// # What a cycle is
//
// A waiter waits for the holders of its lock. A reader that only a queued writer keeps out waits
// for that writer. The cycles of these waits are actual deadlocks, not lock orders that might
// lead to one. A goroutine in a condition's queue waits for no owner. Once it is signalled, or
// its limit has ended, it waits for the lock like any other waiter.
//
// Two things can end a cycle from inside, and the report names them. A wait with a context or a
// time limit may end. An explicit owner that waits in one goroutine may release a lock in another
// goroutine. [Cycle.Certain] reports that neither is possible.
//
// A goroutine that acts for two owners, itself and an explicit owner, counts as two parties. Locks
// without owners take no part: the locks of packages fair and spin and of the standard library.
// Cycles that lead through a channel or through another process are not found. So no cycle does not
// mean that nothing hangs.
//
// # What else there is
//
// Package lockstest/explore runs a test under all schedules of its locks, and so finds a deadlock
// that no run has led to. Command lockvet finds two orders of locks in the source. The page
// docs/guides/finding-mistakes.md says when to take which.
package deadlock

// Package reentrant holds [Mutex], the ReentrantLock of java.util.concurrent.locks: a lock with
// an owner, which may take it again while it holds it.
//
// Take it where a method that holds the lock calls another one that takes it, or where a
// release by the wrong party must be noticed. Take it as well to see the holder and the
// waiters. Package fair has cheaper locks for all other uses.
//
// # Owners
//
// The plain methods act for the calling goroutine. The Context family acts for the
// [github.com/jucgo/locks.Owner] that the context carries, or else for the calling
// goroutine. With an explicit owner, work may move between goroutines: one locks,
// another unlocks, and all that share the owner re-enter. The lock does not keep those
// apart from each other.
//
// # Misuse
//
// An unlock by anybody but the owner, and a hold beyond [MaxHolds], panic in the
// plain methods, and are errors in the Context family; the lock is as before.
//
// # Memory model
//
// The last unlock of an owner synchronizes before the first lock of the next, in the
// terms of the Go memory model. Between goroutines that share an explicit owner
// nothing is ordered.
//
// # Profiles
//
// The block profile and the goroutine-leak profile show waits where the goroutine waits. The
// mutex profile has no events of these locks: the runtime records them for its own semaphores
// only, and there is no public way to add any. Package record measures how long locks are
// waited for and held.
package reentrant

// Package reentrant holds [Mutex], the ReentrantLock of java.util.concurrent.locks: a
// lock with an owner, who may take it again while holding it.
//
// Take it where a method that holds the lock calls another that takes it, where a
// release by the wrong party must be noticed, or where it matters who holds and
// who waits. Where none of that does, package fair has the cheaper locks.
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
package reentrant

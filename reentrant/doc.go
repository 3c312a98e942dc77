// Package reentrant has [Mutex], the ReentrantLock of java.util.concurrent.locks: a lock with an
// owner, which can re-enter it.
//
// Use it if a method that holds the lock calls another method that acquires the lock, or if the
// release by a wrong goroutine must be detected. Use it also to see the holder and the waiters.
// For all other uses package fair has cheaper locks.
//
// # Owners
//
// The plain methods act for the calling goroutine. The Context family acts for the
// [github.com/jucgo/locks.Owner] that the context carries, or else for the calling goroutine.
// With an explicit owner, work may move between goroutines: one locks, another unlocks, and all
// goroutines of the owner can re-enter. The lock does not keep these goroutines from each other.
//
// # Misuse
//
// An unlock by another owner, and a hold beyond [MaxHolds], panic in the plain methods, and are
// errors in the Context family. The lock is unchanged.
//
// # Memory model
//
// In the terms of the Go memory model, the last unlock of an owner synchronizes before the first
// lock of the next owner. Nothing is ordered between goroutines that share an explicit owner.
//
// # Profiles
//
// The block profile and the goroutine-leak profile show each wait at the line where the goroutine
// waits. The mutex profile lacks events of these locks: the runtime records events for its own
// semaphores only, and offers no public way to add events. Package record measures how long
// goroutines wait for locks and hold them.
package reentrant

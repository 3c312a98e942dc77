// Package fair holds locks that choose who comes next: the fairness policy of
// java.util.concurrent.locks, two mutexes that follow it, and a read-write lock.
//
//   - [Mutex] admits in strict order of arrival, by direct hand-off. Take it where the
//     longest wait counts, and where somebody else would starve.
//   - [BargingMutex] lets whoever comes first have a free lock, and bounds how long a waiter can
//     be passed over. Take it where throughput counts.
//   - [RWMutex] is a read-write lock in order of arrival, with the methods of [sync.RWMutex].
//   - [Policy] names the two for locks that offer both, such as reentrant.New.
//
// They do what their twins in package sync do, and besides can be asked for a limited time
// (TryLockFor), or until a context ends (LockContext), and show who waits. The mutexes have
// conditions (NewCond). Like sync.Mutex they belong to no goroutine: any may unlock, and locking
// twice hangs. A lock that knows its owner, or may be taken again by it, is
// package reentrant's.
//
// # What the try forms do
//
// TryLock and TryLockContext barge: they take a free lock, past the waiters. TryLockFor and
// LockContext queue; TryLockFor(0) is the fair try. A context that has ended is an
// error even if the lock is free, and a waiter that gives up has left the queue when its call
// returns.
//
// # Memory model
//
// An unlock synchronizes before the lock that follows it, whichever methods the two are, in
// the terms of the Go memory model.
//
// # Profiles
//
// The block profile and the goroutine-leak profile show waits where the goroutine waits. The
// mutex profile has no events of these locks: the runtime records them for its own semaphores
// only, and there is no public way to add any. Package record measures how long locks are
// waited for and held.
package fair

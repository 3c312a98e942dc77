// Package fair has the fairness policies of java.util.concurrent.locks, two mutexes that follow
// them, and a read-write lock.
//
//   - [Mutex] admits in strict order of arrival, by direct hand-off. Use it if the longest wait
//     counts, or if some goroutine would starve.
//   - [BargingMutex] gives a free lock to the first goroutine that asks, and limits how long a
//     waiter can be overtaken. Use it if throughput counts.
//   - [RWMutex] is a read-write lock in order of arrival, with the methods of [sync.RWMutex].
//   - [locks.Policy] selects one of the two for locks that have both, such as reentrant.New.
//
// They do what their twins in package sync do. They also have waits with a time limit
// (TryLockFor), waits that a context ends (LockContext), and queries for their waiters. The
// mutexes have conditions (NewCond). Like a sync.Mutex they belong to no goroutine: any
// goroutine may unlock, and locking twice hangs. Use package reentrant for a lock with an owner,
// which can re-enter it.
//
// # What the try forms do
//
// TryLock and TryLockContext barge: they acquire a free lock ahead of the waiters. TryLockFor
// and LockContext queue. TryLockFor(0) is the try that respects the queue. A context that has
// ended is an error even if the lock is free. A cancelled waiter is out of the queue when its
// call returns.
//
// # Memory model
//
// In the terms of the Go memory model, an unlock synchronizes before the next lock, whichever
// methods make them.
//
// # Profiles
//
// The block profile and the goroutine-leak profile show each wait at the line where the goroutine
// waits. The mutex profile lacks events of these locks: the runtime records events for its own
// semaphores only, and offers no public way to add events. Package record measures how long
// goroutines wait for locks and hold them.
package fair

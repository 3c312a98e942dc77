// Package locks is java.util.concurrent.locks for Go, with local and distributed locks behind one
// interface: a call site written against [TryLocker] does not change when the lock behind it
// moves from this process to Redis, ZooKeeper, etcd, a database or a file.
//
// This package has what all of them share: the interfaces, the [Owner] of a hold, the errors, and
// the helpers [Do], [TryDo], [Multi] and [Guarded]. The locks are in the packages below it:
// reentrant, rwlock, fair, spin, keyed, and those in distributed. Package lockstest checks a lock
// of your own against the rules on this page.
//
// # Two families of methods
//
// Every lock has the Context family. Local locks also have the plain one, and so take the place
// of a [sync.Mutex]:
//
//	java.util.concurrent.locks  plain family (local only)  Context family
//	lock()                      Lock()                     LockContext(ctx), ctx never ends
//	lockInterruptibly()                                    LockContext(ctx)
//	tryLock()                   TryLock() bool             TryLockContext(ctx)
//	tryLock(time)               TryLockFor(d) bool         LockContext(ctx), ctx with a deadline
//	unlock()                    Unlock()                   UnlockContext(ctx)
//	newCondition()              NewCond()
//
// # Rules
//
// They hold for every lock of this module.
//
//   - Where a lock has owners, a hold belongs to the calling goroutine or, in the Context family,
//     to the [Owner] that ctx carries.
//   - The Context family returns its errors, to be tested with [errors.Is]. The plain family
//     panics with the same values on misuse. Either way the lock is as it was before.
//   - A ctx that has already ended beats a free lock, also on re-entry.
//   - TryLock and TryLockContext barge, even on a fair lock. TryLockFor and LockContext queue,
//     and so TryLockFor(0) is the fair try.
//   - UnlockContext always tries: it takes values from ctx, not its cancellation.
//   - The zero value of a local lock is free and ready to use, and must not be copied after first
//     use.
//   - In the terms of the Go memory model, an unlock synchronizes before the next lock.
package locks

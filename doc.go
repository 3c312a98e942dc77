// Package locks is java.util.concurrent.locks for Go, with local and distributed locks behind
// one interface. A call site written against [TryLocker] does not change when its lock moves
// from this process to Redis, ZooKeeper, etcd, a database or a file.
//
// This package has the parts that all locks share: the interfaces, the [Owner] of a hold, the
// errors, and the helpers [Do], [TryDo], [Multi] and [Guarded]. The locks are in the packages
// reentrant, rwlock, fair, spin, keyed, and in those below distributed. Package lockstest checks
// your own lock against the rules on this page.
//
// # Two families of methods
//
// Every lock has the Context family of methods. Local locks also have the plain family, and can
// replace a [sync.Mutex]:
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
// These rules apply to every lock of this module.
//
//   - If a lock has owners, a hold belongs to the calling goroutine or, in the Context family,
//     to the [Owner] that ctx carries.
//   - The Context family returns errors. Test for them with [errors.Is]. The plain family panics
//     with the same values on misuse. Either way the lock is unchanged.
//   - A ctx that has already ended is an error even if the lock is free, and even on re-entry.
//   - TryLock and TryLockContext barge, even on a fair lock. TryLockFor and LockContext queue.
//     Therefore TryLockFor(0) is the try that respects the queue.
//   - UnlockContext always tries to release: it takes values from ctx, but ignores its
//     cancellation.
//   - The zero value of a local lock is free and ready to use. A lock must not be copied after
//     first use. Other types must be made by a function of their package. A zero keyed.Mutex,
//     condition.Cond, singleton.Lazy, [Guarded] or record.Recorder says so in an error or a panic.
//   - A function that takes a lock says that the lock is nil, also if it is a nil pointer. The
//     methods of a nil lock panic as the methods of a nil [sync.Mutex] do.
//   - In the terms of the Go memory model, an unlock synchronizes before the next lock.
package locks

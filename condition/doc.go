// Package condition has [Cond], the Condition of java.util.concurrent.locks: a place to wait for
// a change by another holder of a lock. The lock is released during the wait.
//
// A Cond can do more than a [sync.Cond]. A lock may have several conditions. A wait can end by a
// context or a time limit. Signals go to the longest waiter. A wait releases all holds of a
// reentrant lock, and restores them. A broadcast does not wake a herd: it queues its waiters for
// the lock.
//
// # Contract
//
//   - A wait always returns with the lock held, even if its limit ended it. Therefore it may
//     return long after its limit.
//   - A signal moves one waiter, if there is one, to the lock's queue before it returns. A
//     signal without waiters is not remembered.
//   - A wait ends by a signal or by its limit, never by both. A signal is never lost to a
//     cancelled waiter.
//   - A wait or a signal without the lock is [github.com/jucgo/locks.ErrNotHeld], as far as the
//     lock can tell, and changes nothing.
//
// Some locks lack a queue for signalled waiters: every [sync.Locker] of another module, and spin's
// Ticket and MCS. A condition of such a lock has a queue of its own for signalled waiters. They ask
// for the lock one after the other, and other goroutines may come in between. A wait releases one
// hold of such a lock. If the lock's Unlock panics, the goroutine does not wait, and the panic
// continues.
//
// Wait in a loop, or with [Cond.WaitWhile]: between the signal and the waiter's turn other
// goroutines may have the lock.
//
// # Memory model
//
// In the terms of the Go memory model, a signal synchronizes before the return of the wait that
// it ends. A wait counts as an unlock and a lock.
package condition

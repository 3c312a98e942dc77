// Package condition holds [Cond], the Condition of java.util.concurrent.locks: a place to
// wait for what other holders of a lock change, with the lock given up meanwhile.
//
// It does what [sync.Cond] does, and more. A lock may have several conditions. A wait can end by a
// context or a time limit. Signals go to the longest waiter. A wait gives up all holds of a
// reentrant lock, and restores them. A broadcast does not wake a herd: it queues its waiters for
// the lock.
//
// # Contract
//
//   - A wait returns with the lock held, also if its limit ended it, and so may return long
//     after that.
//   - A signal moves one waiter, if there is one, to the lock's queue before it returns. A
//     signal without waiters is not remembered.
//   - A wait ends by a signal or by its limit, never by both, and a signal is never lost to
//     a waiter that gives up.
//   - Waiting and signalling without the lock is [github.com/jucgo/locks.ErrNotHeld], as far
//     as the lock can tell, and changes nothing.
//
// Some locks have no queue that a waiter could be moved to: every [sync.Locker] of another
// module, and spin's Ticket and MCS. A condition of such a lock has a queue of its own for
// signalled waiters. They ask for the lock one after the other, and other goroutines may come
// in between. A wait gives up one hold of such a lock. If its Unlock panics, there was no wait,
// and the panic goes on.
//
// Wait in a loop, or with [Cond.WaitWhile]: between the signal and the waiter's turn others may
// have the lock.
//
// # Memory model
//
// A signal synchronizes before the return of the wait that it ends, and a wait is an
// unlock and a lock of the lock, in the terms of the Go memory model.
package condition

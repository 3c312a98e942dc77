// Package condition holds [Cond], the Condition of java.util.concurrent.locks: a place to
// wait for what other holders of a lock change, with the lock given up meanwhile.
//
// It does what [sync.Cond] does, and besides: a lock may have several conditions, a wait can
// end by a context or a time limit, signals go to the longest waiter, all holds of a reentrant
// lock are given up and restored, and a broadcast does not wake a herd, but
// queues its waiters for the lock.
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
// A lock with no queue that a waiter could be moved to, which is any [sync.Locker] from elsewhere, and spin's Ticket and
// MCS, has a line of its own for those who were signalled. A signal moves
// a waiter there, and each asks for the lock when the one before has it; others that ask meanwhile may come first. A
// wait gives up one hold of such a lock. If its Unlock panics, there was no wait, and the panic goes on.
//
// Wait in a loop, or with [Cond.WaitWhile]: between the signal and the waiter's turn others may
// have the lock.
//
// # Memory model
//
// A signal synchronizes before the return of the wait that it ends, and a wait is an
// unlock and a lock of the lock, in the terms of the Go memory model.
package condition

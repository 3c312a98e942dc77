// Package spin has locks that wait by trying again before they sleep, and the backoff that such
// loops need.
//
//   - [Mutex] is a lock that goes to whoever tries first: test and test-and-set.
//   - [Ticket] and [MCS] admit in strict order of arrival. A ticket lock is two counters; an MCS
//     lock lets each waiter look at a flag of its own. On a few cores they cost the same.
//   - [Backoff] is for loops of your own that retry.
//
// The locks do what [sync.Mutex] does, and besides can be asked for a limited time (TryLockFor),
// until a context ends (LockContext), have conditions (NewCond), and show who waits. Like
// sync.Mutex they belong to no goroutine: any may unlock, and locking twice hangs.
//
// # When to spin
//
// Spinning pays if the holder runs on another core and is done sooner than it takes to put a
// goroutine to sleep and to wake it: a few hundred nanoseconds. Past that it burns a core that
// another goroutine could use, possibly the holder.
//
// So it pays for sections of some ten instructions, on goroutines that are no more than there are
// cores. It does not for sections that allocate much, call the system, or wait for anything; not
// with GOMAXPROCS=1; and not where many goroutines run, since Go's scheduler may take the
// processor from the holder, or put its thread to sleep, and a spinner cannot know. In Go
// sync.Mutex spins as well when that looks promising, so that a lock of this package is seldom
// much faster: measure, for example with go test -bench Contended ./bench.
//
// All locks here spin for about the time of one hand-over at most, and only the next in line
// does; then they sleep. With one processor, or a hundred goroutines on each, they get on all the
// same, at the pace of package fair's, and in a testing/synctest bubble a waiter comes to rest.
//
// # What the try forms do
//
// TryLock and TryLockContext take a lock that is free. A Mutex they may thereby take past those
// who wait; a Ticket or MCS is never free while anybody waits. TryLockFor and LockContext queue;
// TryLockFor(0) does not wait. A context that has ended is an error even if the lock is free, and
// a waiter that gives up has left the queue when its call returns.
//
// # Memory model
//
// An unlock synchronizes before the lock that follows it, whichever methods the two are, in the
// terms of the Go memory model.
package spin

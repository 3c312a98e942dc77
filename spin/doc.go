// Package spin has locks whose waiters spin before they park, and the backoff that such loops
// need.
//
//   - [Mutex] goes to the first goroutine that tries: test and test-and-set.
//   - [Ticket] and [MCS] admit in strict order of arrival. A ticket lock is two counters. In an
//     MCS lock each waiter looks at a flag of its own. On a few cores Ticket and MCS cost the
//     same.
//   - [Backoff] is for your own loops that retry.
//
// The locks do what [sync.Mutex] does. They also have waits with a time limit (TryLockFor),
// waits that a context ends (LockContext), conditions (NewCond), and queries for their waiters.
// Like a sync.Mutex they belong to no goroutine: any goroutine may unlock, and locking twice
// hangs.
//
// # When to spin
//
// Spinning pays if the holder runs on another core, and releases the lock sooner than a
// goroutine can park and wake: within a few hundred nanoseconds. A longer spin wastes a core
// that another goroutine could use, possibly the holder.
//
// Therefore spinning pays for sections of some ten instructions, with no more goroutines than
// cores. It does not pay for sections that allocate much, make system calls, or wait, and not
// with GOMAXPROCS=1. It does not pay with many goroutines either: Go's scheduler may take the
// processor from the holder, or suspend its thread, and the spinning goroutine cannot know. Go's
// sync.Mutex also spins if that looks promising. Therefore a lock of this package is seldom much
// faster. Measure, for example with go test -bench Contended ./bench.
//
// All locks here spin for at most about the time of one hand-off, and only the first waiter
// spins. Then it parks. With one processor, or with a hundred goroutines for each processor,
// they are as fast as the locks of package fair. In a testing/synctest bubble a waiter blocks
// durably.
//
// # What the try forms do
//
// TryLock and TryLockContext acquire a free lock. A Mutex can be free while goroutines wait, and
// then they barge. A Ticket or an MCS is never free while a goroutine waits. TryLockFor and
// LockContext queue. TryLockFor(0) does not wait. A context that has ended is an error even if
// the lock is free. A cancelled waiter is out of the queue when its call returns.
//
// # Memory model
//
// In the terms of the Go memory model, an unlock synchronizes before the next lock, whichever
// methods make them.
package spin

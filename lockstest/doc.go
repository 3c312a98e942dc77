// Package lockstest checks whether a lock keeps the rules of package locks. Every lock of
// this module passes it, local or distributed. Use it for your own locks:
//
//	func TestMyLockIsATryLocker(t *testing.T) {
//		lockstest.TestTryLocker(t, lockstest.Config{
//			New:       func(tb testing.TB) locks.TryLocker { return mylock.New() },
//			Owned:     true,
//			Reentrant: true,
//		})
//	}
//
// Run it with -race: only the race detector sees whether an unlock happens before the next lock.
// The suite counts goroutines. Therefore nothing else may run at the same time: call neither
// [testing.T.Parallel] nor this suite from two tests at once.
//
// Declare in [Config] what a lock promises beyond [locks.TryLocker]. The suite cannot find it
// out: a second LockContext that hangs is right for one lock and wrong for another. A lock that
// has Lock, Unlock and TryLock, or TryLockFor, is checked with these as well.
//
// # What the suite cannot see
//
// A lock that passes may still have these defects:
//
//   - A missing happens-before edge, without -race. The race detector needs amd64, arm64 or another
//     port that has it.
//   - A race of a few nanoseconds. The contended checks and the random histories meet it by chance.
//     More Rounds and more Goroutines improve the chance, and so do repeated runs.
//   - An error that comes after more than 65,537 acquisitions, holds or readers. A check of these
//     stops at a quarter of Timeout, and sooner if the lock is Leased. It counts 288 readers of a
//     Leased lock.
//   - An error in a queue of more than 48 waiters.
//   - A barging LockContext, a starving writer, or a wrong order, if FIFO is not declared.
//   - Memory that a [locks.Leased] lock retains, and less than 16 bytes for each acquisition.
//   - Leases that end by time. The suite knows only the losses that Lose makes.
//   - A token that a waiter inherits from the holder before it. See lease.WithMaxLocalHandoffs.
//     Likewise a token that is repeated after a loss: Lose may destroy the counter of the store.
//   - Exclusion between processes, or between two clients of a store. The lock under test has one
//     client, and its local queue can exclude alone. See package distributed/lease/leasetest.
//   - What the interfaces do not contain: conditions, upgrades, hold counts, and speed.
package lockstest

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
package lockstest

// Package lockstest checks whether a lock keeps the rules of package locks. Every lock of
// this module passes it, local or distributed, and it is there for locks of your own:
//
//	func TestMyLockIsATryLocker(t *testing.T) {
//		lockstest.TestTryLocker(t, lockstest.Config{
//			New:       func(tb testing.TB) locks.TryLocker { return mylock.New() },
//			Owned:     true,
//			Reentrant: true,
//		})
//	}
//
// Run it with -race: whether an unlock happens before the next lock is seen only so. The
// suite counts goroutines, so nothing else may run at the same time: call neither
// [testing.T.Parallel] nor this suite from two tests at once.
//
// What a lock promises beyond [locks.TryLocker] is declared in [Config], because the suite cannot
// find it out: that a second LockContext hangs is right for one lock and wrong for another.
package lockstest

// Package shmlock provides a lock between the processes of one machine on one word of shared
// memory: an atomic in a mapped file. Without waiters, an acquisition and a release are one atomic
// operation each and no system call. A lock on a file, of package filelock, needs three calls.
//
//	counter, err := shmlock.Open("/dev/shm/counter")
//	...
//	err = locks.Do(ctx, counter, func(ctx context.Context) error {
//		if counter.Recovered(ctx) { // the last holder died
//			...
//		}
//		...
//	})
//
// It is for processes that acquire a lock many thousand times a second, usually because the data
// that it guards is in shared memory too. For any other use, choose package filelock. The kernel
// knows the locks of package filelock, and none of the limits below applies to them.
//
// # How it works
//
// The word contains the number and the start time of the holder's process. On Linux waiters sleep
// in a futex, and a release wakes one of them. Elsewhere waiters poll, every 25 ms at most. If the
// holder's process is dead, a waiter takes the lock over, within 50 ms on an idle machine. The
// dead process may have left its work half done: [Mutex.Recovered] tells the new holder.
//
// # Limits
//
// The kernel does not know the lock; whether its holder lives is judged by the process number. All
// processes must be in one PID namespace and one time namespace: in another namespace, [Open] fails
// with [locks.ErrForeign]. A reused number is recognised by its start time, to 10 ms on Linux and
// to 1 ms on macOS. Other systems cannot recognise a reused number, and the lock stays held as long
// as another process has the number of the dead process.
//
// A stopped holder keeps the lock, and so does a goroutine that forgets it: holds are without a
// lease. A process that replaces its program by exec keeps the lock too, if other processes have
// the file open. The lock has neither tokens, nor notices of losses, nor readers.
//
// A program that may write to the file can break the lock. A program that truncates it kills the
// processes that have it mapped. If the file is deleted while in use, processes that open the path
// later have another lock. The file must be on a local file system, best in memory, such as
// /dev/shm.
//
// Systems: Linux, macOS and the BSDs. On other systems, [Open] fails with [errors.ErrUnsupported].
package shmlock

// Package filelock provides locks between the processes of one machine, on files. It needs no
// server. A [Client] is a [locks.Provider], so it can replace the locks of a single process:
//
//	client, err := filelock.New("/run/lock/shop")
//	...
//	err = locks.Do(ctx, client.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                           on
//	Client.Locker, Client.Mutex    a file of its own in the client's directory, locked exclusively
//	Client.RWMutex                 the same file, locked shared or exclusively
//	Open                           a given file, locked either way
//
// Every lock is owned by a goroutine or by an explicit [locks.Owner], and is reentrant. Callers
// that use a lock often should keep the value that Locker returns.
//
// # How it works
//
// A process opens a file once, whatever paths and clients lead to it, and keeps it open. All
// goroutines of the process wait in a local queue first. The goroutine at its head calls flock,
// then asks with one stat whether the path still leads to this file. A release is one flock. On
// Windows the calls are LockFileEx and UnlockFileEx, and no stat.
//
// If other goroutines wait in the local queue, a release hands the lock to the first of them
// and leaves the file locked. It does so at most 64 times in a row and for 100 ms, then unlocks
// the file. A waiting process then gets its turn. Waiters for another process poll: after 1 ms
// at first, later every 25 ms at most, with random variation. On Linux a waiting process
// announces itself by a record lock on one byte at offset 2^62, on file systems where that is
// known to have no effect on anything else.
//
// The package uses flock, not the record locks of POSIX. A process loses its POSIX record locks
// when any part of it closes the file, and they do not distinguish goroutines. Record locks of an
// open file description would work too, at twice the cost, but would not exclude other programs,
// which use flock.
//
// # Guarantees
//
// On a local file system a lock has one exclusive holder at a time, or any number of shared
// holders. This includes all other programs that lock the file with flock, such as flock(1). The
// system frees the lock when the process ends, however it ends. A hold needs no lease: a stopped
// process keeps its lock, and nothing expires. [locks.Hold.Deadline] returns false, and Extend does
// nothing.
//
// # What happens when
//
//   - A process dies: its locks are free at once. A child process does not keep them, unless it has
//     the descriptor of the hold, see [Mutex.Hold].
//   - A process is stopped: it keeps its locks.
//   - A context ends: the call returns at once, and cannot acquire the lock later.
//   - The file is deleted, renamed or replaced while waiters wait, or a directory above it is
//     renamed or mounted over: the next acquisition notices, and locks the file that has the
//     path now. It creates the file if there is none.
//   - The same happens while the lock is held, or during the acquisition: others can lock the
//     new file. The holder is told only afterwards. [locks.Hold.Err] asks the system at each
//     call and is [locks.ErrLost] from then on. [locks.Hold.Lost] is closed when this process
//     notices, see [WithWatch]. UnlockContext does not check. To replace a lock file safely,
//     acquire its lock, replace the file, and release the lock without doing anything else.
//     This package never deletes a file.
//   - The directory is missing: [New] creates it. Later, and for [Open], the error matches
//     [fs.ErrNotExist].
//   - The path leads to a directory, a device or a pipe: the error matches [locks.ErrForeign].
//     So does [WithTokens] on a file with other contents. Symbolic links are followed.
//   - The file is read-only for this user: it can be locked, but with [WithTokens] the
//     error matches [fs.ErrPermission]. Network file systems refuse an exclusive lock on such a
//     file.
//   - The process runs out of file descriptors: the package closes the files that are not in
//     use, and tries again.
//   - The system cannot lock the file (ENOLCK, or an unsupported file system): the error is
//     returned, nothing is held.
//   - A reader asks for the exclusive lock: [locks.ErrUpgrade] at once. A writer may read as
//     well and then release the exclusive lock. Readers of other processes wait until all
//     readers of its process have left, because flock converts a lock by releasing it first.
//   - The client is closed: see [Client.Close].
//
// # When not to use it
//
// For processes on several machines, use a server. On NFS, the server or each machine for itself
// carries out flock, depending on versions and mount options. A call on NFS takes as long as the
// server does, and a lock may be lost with the connection without notice. Inside one process, use
// package reentrant or keyed. For many thousand acquisitions a second, package shmlock has a lock
// in shared memory, with limits of its own.
//
// # Limits
//
// Processes are not served in order, and a stream of readers can starve a writer of another
// process. Any user who can open a lock file, if only for reading, can lock it. A process keeps up
// to 64 unused files open. Without flock and LockFileEx, every call fails with
// [errors.ErrUnsupported].
package filelock

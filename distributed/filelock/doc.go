// Package filelock has locks between the processes of one machine, on files. A [Provider] is a [locks.Provider]: it takes
// the place of the
// locks of one process, and needs no server.
//
//	provider, err := filelock.New("/run/lock/shop")
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                       on
//	Provider.Locker, Lock      a file of its own in the provider's directory, locked exclusively
//	Provider.ReadWriteLocker   the same file, shared or exclusive
//	Open                       a given file, either way
//	OpenShared                 a word of memory that processes share
//
// All are owned by a goroutine or an explicit owner, and reentrant. Whoever asks often for a lock keeps what Locker returns:
// to make it costs
// some allocations, to use it none.
//
// # How it works
//
// A file is opened once in a process, whatever paths and providers lead to it, and stays open: an acquisition is a flock and
// a look whether the file still has its name, a release is a flock; on Windows it is LockFileEx. All goroutines of the process
// queue at a gate before that.
//
// On Linux, a file that is locked often has an alarm, which costs an acquisition less than a look: inotify watches the file and
// the directories that lead to it, and the kernel tells when the table of mounts changes. When anything of that kind has
// happened, and every 100 ms, an acquisition looks. Each does where there can be no alarm: if there is a symbolic link in the
// path, if a file system on the way is none of ext4, XFS, F2FS, tmpfs, ramfs and overlayfs, if a directory or the file may not be
// read, if there are no watches left (fs.inotify.max_user_watches, max_user_instances), before Linux 5.8, without /proc, and on
// other systems. A process has three descriptors for all its alarms.
//
// Who releases the lock while others wait at the gate leaves it to the first of them, 64 times in a row and for 100 ms at
// most; then the file is really unlocked, and if another process waits, it gets its turn. Who waits for another process tries
// again, after 1 ms first and each 25 ms at last, with some randomness. A process that waits tells others by a lock of
// another kind on
// one byte at 2^62 of the file, on Linux and file systems for which that is known to be without effect on anything else.
//
// It is flock and not the record locks of POSIX because these end when anything in the process closes the file, know nothing
// of goroutines, and are what
// network file systems make of flock anyway. Record locks of an open file description would do as well, at more than twice the
// price, but other programs use flock.
//
// # Guarantees
//
// On a local file system there is one exclusive holder at a time, or shared ones, among all that lock the file this way:
// this package, flock(1), most
// libraries. The system frees the lock when the process ends, however it does. There is no lease, and so nothing is lost while a
// process is stopped, and nobody gets the lock of one that is. [locks.Hold.Deadline] returns false, and Extend has nothing to do.
//
// # What happens when
//
//   - A process dies: its locks are free at once. Programs it has started do not keep them, nor do those started while it
//     holds one.
//   - A process is stopped: it keeps its locks.
//   - A context ends: the call returns at once. It leaves nothing that could take the lock later.
//   - The file is deleted or replaced while somebody waits, by whoever: who gets the lock of the old file sees that, and locks
//     the new one, which is made if there is none. A directory on the way that is renamed, and a mount, are the same. Only if the
//     process itself changes its root (chroot), it may take until 100 ms later to be seen.
//   - The same while somebody holds it, or is just taking it: others get the new file. The holder cannot be told before that
//     happens: [locks.Hold.Err] asks the system each time, and is [locks.ErrLost] from then on; [locks.Hold.Lost] is closed when
//     somebody has found it out, for which [WithWatch] looks. An unlock does not look. No file is ever deleted by this package.
//     Who wants to replace a file safely holds its lock, replaces it, and unlocks it without having done anything else.
//   - The directory is missing: [New] makes it. Later, and for [Open], it is an error that matches [fs.ErrNotExist].
//   - There is something else under the path: [locks.ErrForeign] for a directory, a device, a pipe, or what is no counter
//     where one is to be. A symbolic link is followed.
//   - The file may only be read: it is locked all the same, without tokens. Network file systems refuse an exclusive lock then.
//   - A system call is interrupted: it is repeated. If the system has no room for a lock (ENOLCK), or does not know how to
//     lock the file, the error is returned, and nothing is held.
//   - A reader asks to write: [locks.ErrUpgrade] at once. A writer that goes on reading keeps other processes' readers out
//     until all readers
//     of its process have left, because flock changes the kind of a lock by giving it up first.
//   - The Provider is closed: see [Provider.Close].
//
// # When not to use it
//
// If the processes are on several machines, take a server. On NFS and the like flock is carried out by the server, or by
// each machine for itself, depending on versions
// and mount options; a call lasts as long as the server lets it, and a lock may be lost with the connection without anybody
// being told. If everything is in one process, take packages reentrant or named.
//
// # Limits
//
// All threads of a process must be in one namespace of mounts. Among processes there is no order, and readers can keep a writer
// of another process waiting. Who can open a lock file, if only to read, can lock it. A provider keeps up to 256 files open that
// nobody uses. Where the system has neither flock nor LockFileEx, everything fails with [errors.ErrUnsupported].
package filelock

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// markAt is the byte that a process read-locks while it waits for the file. It is far behind the
// contents. The lock belongs to an open file description, and does not interact with flock. It only
// tells other processes that this process waits. The kernel ends the lock if the process dies.
const markAt = 1 << 62

// markable reports whether the file is on a file system that is known to keep the two kinds of
// locks apart. Network file systems carry out both as record locks.
func markable(f *os.File) bool {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, 0x2FC12FC1 /* ZFS */, 0xCA451A4E /* bcachefs */ :
		return true
	}
	return false
}

// mark tells other processes that this process waits for the file. A failure affects fairness only.
func (d descriptor) mark() { d.record(unix.F_OFD_SETLK, unix.F_RDLCK) }

// unmark undoes mark.
func (d descriptor) unmark() { d.record(unix.F_OFD_SETLK, unix.F_UNLCK) }

// marked reports whether another process waits for the file, and whether the answer is known.
func (d descriptor) marked() (waits, known bool) {
	found, known := d.record(unix.F_OFD_GETLK, unix.F_WRLCK)
	return known && found != unix.F_UNLCK, known
}

// record asks for the record lock of the mark, and returns the kind of lock in the answer.
func (d descriptor) record(command int, lockType int16) (int16, bool) {
	if !d.marks {
		return 0, false
	}
	l := &unix.Flock_t{Type: lockType, Start: markAt, Len: 1}
	err := retry(func() error { return unix.FcntlFlock(d.Fd(), command, l) })
	return l.Type, err == nil
}

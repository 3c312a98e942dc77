package filelock

import "golang.org/x/sys/unix"

// markAt is the byte that a process read-locks while it waits for the file. It is far behind
// the contents. The lock is one of an open file description, which does not interact with
// flock. It only tells other processes that this one waits. The kernel ends it if the process
// dies.
const markAt = 1 << 62

// markable reports whether the file is on a file system that is known to keep the two kinds of
// locks apart. Network file systems carry out both as record locks.
func markable(fd int) bool {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, 0x2FC12FC1 /* ZFS */, 0xCA451A4E /* bcachefs */ :
		return true
	}
	return false
}

// flock is the system call with LOCK_NB or LOCK_UN, which does not wait for other holders. On
// markable file systems it does not wait for a disk or a server either, so a raw system call is
// enough.
func (d descriptor) flock(how int) error {
	if !d.marks {
		return unix.Flock(d.fd, how)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_FLOCK, uintptr(d.fd), uintptr(how), 0); errno != 0 {
		return errno
	}
	return nil
}

func markLock(kind int16) *unix.Flock_t { return &unix.Flock_t{Type: kind, Start: markAt, Len: 1} }

// mark tells other processes that this one waits for the file. A failure affects fairness only.
func (d descriptor) mark() {
	if d.marks {
		retry(func() error { return unix.FcntlFlock(uintptr(d.fd), unix.F_OFD_SETLK, markLock(unix.F_RDLCK)) })
	}
}

// unmark undoes mark.
func (d descriptor) unmark() {
	if d.marks {
		retry(func() error { return unix.FcntlFlock(uintptr(d.fd), unix.F_OFD_SETLK, markLock(unix.F_UNLCK)) })
	}
}

// marked reports whether another process waits for the file, and whether that is known.
func (d descriptor) marked() (waits, known bool) {
	if !d.marks {
		return false, false
	}
	l := markLock(unix.F_WRLCK)
	err := retry(func() error { return unix.FcntlFlock(uintptr(d.fd), unix.F_OFD_GETLK, l) })
	return err == nil && l.Type != unix.F_UNLCK, err == nil
}

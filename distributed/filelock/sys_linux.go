package filelock

import "golang.org/x/sys/unix"

// markAt is the byte that a process locks, for reading, while it waits for the file. It is far behind whatever is in the
// file. The lock
// is one of an open file description, which has nothing to do with flock's: it only tells others that somebody waits, and
// the kernel
// ends it if the process dies.
const markAt = 1 << 62

// markable reports whether the file is on a file system of which it is known that the two kinds of locks are apart. Network file
// systems carry out both as record locks.
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

// flock is the system call, which waits for nobody as it is used here. Where it is carried out in this kernel alone, it does not
// even do so for a disk or a server: then the runtime need not be told of it.
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

// mark says that this process waits for the file. Whether it succeeds is of no consequence but for fairness.
func (d descriptor) mark() {
	if d.marks {
		retry(func() error { return unix.FcntlFlock(uintptr(d.fd), unix.F_OFD_SETLK, markLock(unix.F_RDLCK)) })
	}
}

// unmark takes mark back.
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

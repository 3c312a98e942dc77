//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// The lock is flock's, which belongs to the open file. A record lock of POSIX belongs to the
// process, and would end as soon as any part of the process closes the file.

// errReadOnlySystem says that the file system is read-only.
const errReadOnlySystem = unix.EROFS

func idOf(f *os.File) (fileID, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(int(f.Fd()), &st) })
	return fileID{uint64(st.Dev), uint64(st.Ino)}, os.NewSyscallError("fstat", err)
}

// leads reports whether path leads to the file that is open as id.
func leads(path string, id fileID) (bool, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Stat(path, &st) })
	switch {
	case err == nil:
		return id == fileID{uint64(st.Dev), uint64(st.Ino)}, nil
	case err == unix.ENOENT || err == unix.ENOTDIR:
		return false, nil
	}
	return false, &fs.PathError{Op: "stat", Path: path, Err: err}
}

// noDescriptors reports whether err says that the process or the system cannot open any more
// files.
func noDescriptors(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// retry repeats f as long as a signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func (d descriptor) flock(how int) error {
	return retry(func() error { return unix.Flock(int(d.Fd()), how) })
}

// tryLock locks the file if no other process has a conflicting lock. The descriptor holds no
// lock before.
func (d descriptor) tryLock(exclusive bool) (bool, error) {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	err := d.flock(how)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, os.NewSyscallError("flock", err)
}

// unlock releases the lock.
func (d descriptor) unlock() error { return os.NewSyscallError("flock", d.flock(unix.LOCK_UN)) }

// duplicate returns another descriptor of the open file, which is closed on exec. The lock stays
// while either of them is open.
func (d descriptor) duplicate() (*os.File, error) {
	fd, err := unix.FcntlInt(d.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), d.Name()), nil
}

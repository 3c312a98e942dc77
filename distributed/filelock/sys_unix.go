//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
)

// descriptor is an open lock file. Its lock is flock's, which belongs to the open file. A
// record lock of POSIX belongs to the process, and would end as soon as any part of the process
// closes the file. The descriptor is closed on exec, so that a child process does not keep the
// lock. The kernel frees the lock when the process ends.
type descriptor struct {
	fd       int
	marks    bool // see mark
	readOnly bool
}

// openFile opens the regular file p, and creates it if it does not exist. A file without write
// permission is opened for reading, which is enough to lock it.
func openFile(p place, perm fs.FileMode) (descriptor, fileID, error) {
	fail := func(err error) (descriptor, fileID, error) {
		return descriptor{}, fileID{}, &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	// This comes first, because opening a device or a pipe may have effects of its own.
	if i, err := os.Stat(p.path); err == nil && !i.Mode().IsRegular() {
		return fail(fmt.Errorf("%w: not a regular file", locks.ErrForeign))
	}
	const always = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := open(p.path, unix.O_RDWR|unix.O_CREAT|always, perm)
	readOnly := false
	// Another user's file in a sticky directory such as /tmp may refuse O_CREAT.
	for _, mode := range []int{unix.O_RDWR, unix.O_RDONLY} {
		if err == nil || !errors.Is(err, fs.ErrPermission) && err != unix.EROFS {
			break
		}
		var again error
		if fd, again = open(p.path, mode|always, 0); again == nil {
			err, readOnly = nil, mode == unix.O_RDONLY
		}
	}
	if err != nil {
		return fail(err)
	}
	d := descriptor{fd: fd, readOnly: readOnly}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		d.close()
		return fail(err)
	}
	if uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG {
		d.close()
		return fail(fmt.Errorf("%w: not a regular file", locks.ErrForeign))
	}
	d.marks = markable(fd)
	return d, fileID{uint64(st.Dev), uint64(st.Ino)}, nil
}

func open(path string, mode int, perm fs.FileMode) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Open(path, mode, uint32(perm.Perm()))
		return err
	})
	return fd, err
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

// tryLock locks the file if no other process has a conflicting lock. The descriptor holds no
// lock before.
func (d descriptor) tryLock(exclusive bool) (bool, error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		switch err := d.flock(how | unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// unlock releases the lock.
func (d descriptor) unlock() error {
	for {
		if err := d.flock(unix.LOCK_UN); err != unix.EINTR {
			return os.NewSyscallError("flock", err)
		}
	}
}

// close releases the lock as well, unless the open file has another descriptor: see duplicate.
func (d descriptor) close() { unix.Close(d.fd) }

// duplicate returns another descriptor of the open file, which is closed on exec.
func (d descriptor) duplicate(path string) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ReadAt reads from the file.
func (d descriptor) ReadAt(b []byte, off int64) (n int, err error) {
	err = retry(func() error { n, err = unix.Pread(d.fd, b, off); return err })
	if err != nil {
		return 0, os.NewSyscallError("pread", err)
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes to the file.
func (d descriptor) WriteAt(b []byte, off int64) (n int, err error) {
	err = retry(func() error { n, err = unix.Pwrite(d.fd, b, off); return err })
	if err != nil {
		return 0, os.NewSyscallError("pwrite", err)
	}
	if n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// names reports whether p leads to the file that is open as id.
func (descriptor) names(p place, id fileID) (bool, error) {
	at, err := p.id()
	switch {
	case err == nil:
		return at == id, nil
	case err == unix.ENOENT || err == unix.ENOTDIR:
		return false, nil
	}
	return false, &fs.PathError{Op: "stat", Path: p.path, Err: err}
}

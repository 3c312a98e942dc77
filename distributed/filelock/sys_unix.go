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

// descriptor is an open lock file. Its lock is flock's: it belongs to the open file, not to the process as a
// record lock of POSIX does, which would end as soon as anything in the process closes the file. It is closed on exec, so that a
// program started meanwhile does not hold the lock, and freed by the kernel when the process ends.
type descriptor struct {
	fd    int
	marks bool // see mark
}

// openFile opens the regular file p, and makes it if there is none. Where it may not be written it is opened to be read, which
// suffices to lock it.
func openFile(p place, perm fs.FileMode) (descriptor, fileID, error) {
	fail := func(err error) (descriptor, fileID, error) {
		return descriptor{}, fileID{}, &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	// Asked before, because to open a device or a pipe may have effects of its own.
	if i, err := os.Stat(p.path); err == nil && !i.Mode().IsRegular() {
		return fail(fmt.Errorf("%w: not a regular file", locks.ErrForeign))
	}
	const always = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := open(p.path, unix.O_RDWR|unix.O_CREAT|always, perm)
	// A file of somebody else in a directory for all may not be opened with O_CREAT.
	for _, mode := range []int{unix.O_RDWR, unix.O_RDONLY} {
		if err == nil || !errors.Is(err, fs.ErrPermission) && err != unix.EROFS {
			break
		}
		var again error
		if fd, again = open(p.path, mode|always, 0); again == nil {
			err = nil
		}
	}
	if err != nil {
		return fail(err)
	}
	d := descriptor{fd: fd}
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

// retry repeats f as long as a signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// tryLock locks the file, if nobody's lock is in the way. It holds none before.
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

// unlock ends the lock.
func (d descriptor) unlock() error {
	for {
		if err := d.flock(unix.LOCK_UN); err != unix.EINTR {
			return os.NewSyscallError("flock", err)
		}
	}
}

// close ends the lock as well: nobody else has the open file.
func (d descriptor) close() { unix.Close(d.fd) }

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

// names reports whether p is the name of the file that is open as id.
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

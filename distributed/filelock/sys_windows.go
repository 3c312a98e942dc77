package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/windows"

	"github.com/jucgo/locks"
)

// place is a path.
type place struct{ path string }

func newPlace(path string) (place, error) {
	_, err := windows.UTF16PtrFromString(path)
	return place{path}, err
}

// descriptor is an open lock file. A lock of Windows keeps others from reading the locked
// bytes, so this one is on a byte far behind the contents. Child processes do not inherit the
// handle. The system frees the lock when the process ends.
type descriptor struct {
	f        *os.File
	readOnly bool
}

// openFile opens the regular file p, and creates it if it does not exist. A file without write
// permission is opened for reading, which is enough to lock it.
func openFile(p place, perm fs.FileMode) (descriptor, fileID, error) {
	foreign := &fs.PathError{Op: "open", Path: p.path, Err: fmt.Errorf("%w: not a regular file", locks.ErrForeign)}
	if i, err := os.Stat(p.path); err == nil && !i.Mode().IsRegular() {
		return descriptor{}, fileID{}, foreign
	}
	readOnly := false
	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, perm)
	if errors.Is(err, fs.ErrPermission) {
		if again, e := os.Open(p.path); e == nil {
			f, err, readOnly = again, nil, true
		}
	}
	if err != nil {
		return descriptor{}, fileID{}, err
	}
	var i windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &i); err != nil {
		f.Close()
		return descriptor{}, fileID{}, &fs.PathError{Op: "stat", Path: p.path, Err: err}
	}
	id := fileID{uint64(i.VolumeSerialNumber), uint64(i.FileIndexHigh)<<32 | uint64(i.FileIndexLow)}
	return descriptor{f, readOnly}, id, nil
}

// noDescriptors reports whether err says that the process cannot open any more files.
func noDescriptors(err error) bool { return errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES) }

func lockedByte() *windows.Overlapped {
	return &windows.Overlapped{Offset: math.MaxUint32 - 1, OffsetHigh: math.MaxInt32}
}

// tryLock locks the file if no other process has a conflicting lock. The descriptor holds no
// lock before.
func (d descriptor) tryLock(exclusive bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	switch err := windows.LockFileEx(windows.Handle(d.f.Fd()), flags, 0, 1, 0, lockedByte()); err {
	case nil:
		return true, nil
	case windows.ERROR_LOCK_VIOLATION, windows.ERROR_IO_PENDING:
		return false, nil
	default:
		return false, os.NewSyscallError("LockFileEx", err)
	}
}

// unlock releases the lock.
func (d descriptor) unlock() error {
	return os.NewSyscallError("UnlockFileEx", windows.UnlockFileEx(windows.Handle(d.f.Fd()), 0, 1, 0, lockedByte()))
}

func (d descriptor) close() { d.f.Close() }

func (descriptor) duplicate(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// ReadAt reads from the file.
func (d descriptor) ReadAt(b []byte, off int64) (int, error) { return d.f.ReadAt(b, off) }

// WriteAt writes to the file.
func (d descriptor) WriteAt(b []byte, off int64) (int, error) { return d.f.WriteAt(b, off) }

// names returns true: Windows neither deletes nor renames an open file.
func (descriptor) names(place, fileID) (bool, error) { return true, nil }

func (descriptor) mark()                       {}
func (descriptor) unmark()                     {}
func (descriptor) marked() (waits, known bool) { return false, false }

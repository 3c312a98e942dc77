package filelock

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// A lock of Windows keeps others from reading the locked bytes, so this package locks a byte far
// behind the contents.

// errReadOnlySystem says that the file system is read-only.
const errReadOnlySystem = windows.ERROR_WRITE_PROTECT

func idOf(f *os.File) (fileID, error) {
	var i windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &i)
	id := fileID{uint64(i.VolumeSerialNumber), uint64(i.FileIndexHigh)<<32 | uint64(i.FileIndexLow)}
	return id, os.NewSyscallError("GetFileInformationByHandle", err)
}

// leads returns true: Windows neither deletes nor renames an open file.
func leads(string, fileID) (bool, error) { return true, nil }

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
	err := windows.LockFileEx(windows.Handle(d.Fd()), flags, 0, 1, 0, lockedByte())
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, os.NewSyscallError("LockFileEx", err)
}

// unlock releases the lock.
func (d descriptor) unlock() error {
	return os.NewSyscallError("UnlockFileEx", windows.UnlockFileEx(windows.Handle(d.Fd()), 0, 1, 0, lockedByte()))
}

func (descriptor) duplicate() (*os.File, error) { return nil, errors.ErrUnsupported }

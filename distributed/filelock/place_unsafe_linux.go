package filelock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// place is a path, also as the NUL-terminated bytes that the kernel takes, so that an
// acquisition does not have to make them.
type place struct {
	path string
	c    *byte
}

func newPlace(path string) (place, error) {
	c, err := unix.BytePtrFromString(path)
	return place{path, c}, err
}

// id returns the file that the path leads to. It asks statx for the inode number only. Package
// unix would allocate.
func (p place) id() (fileID, error) {
	var st unix.Statx_t
	at := unix.AT_FDCWD
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(at), uintptr(unsafe.Pointer(p.c)), 0,
			unix.STATX_INO, uintptr(unsafe.Pointer(&st)), 0)
		switch errno {
		case 0:
			return fileID{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}, nil
		case unix.EINTR:
			continue
		case unix.ENOSYS, unix.EPERM: // a kernel, or a sandbox, without it
			return p.stat()
		}
		return fileID{}, errno
	}
}

func (p place) stat() (fileID, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Stat(p.path, &st) })
	return fileID{uint64(st.Dev), st.Ino}, err
}

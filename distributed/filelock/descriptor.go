package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/jucgo/locks"
)

// fileID identifies a file as long as it is open somewhere.
type fileID struct{ dev, ino uint64 }

// descriptor is an open lock file. The system closes it in child processes, so that they do not
// keep the lock, and frees the lock when the process ends.
type descriptor struct {
	*os.File
	readOnly bool
	marks    bool // see mark
}

// openFile opens the regular file at path, and creates it if it does not exist. A file without
// write permission is opened for reading, which is enough to lock it.
func openFile(path string, perm fs.FileMode) (d descriptor, id fileID, err error) {
	// This comes first, because opening a device or a pipe may have effects of its own.
	if i, err := os.Stat(path); err == nil && !i.Mode().IsRegular() {
		return d, id, foreign(path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, perm)
	// Another user's file in a sticky directory such as /tmp may refuse O_CREATE.
	for _, mode := range []int{os.O_RDWR, os.O_RDONLY} {
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errReadOnlySystem) {
			break
		}
		if again, e := os.OpenFile(path, mode, 0); e == nil {
			f, err, d.readOnly = again, nil, mode == os.O_RDONLY
		}
	}
	if err != nil {
		return d, id, err
	}
	i, err := f.Stat()
	if err == nil && !i.Mode().IsRegular() {
		err = foreign(path)
	}
	if err == nil {
		id, err = idOf(f)
	}
	if err != nil {
		f.Close()
		return d, id, err
	}
	d.File, d.marks = f, markable(f)
	return d, id, nil
}

func foreign(path string) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: not a regular file", locks.ErrForeign)}
}

//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// These systems have no lock that belongs to an open file.

type place struct{ path string }

func newPlace(path string) (place, error) { return place{path}, nil }

type descriptor struct{ readOnly bool }

var errUnsupported = fmt.Errorf("file locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func openFile(place, fs.FileMode) (descriptor, fileID, error) {
	return descriptor{}, fileID{}, errUnsupported
}

func noDescriptors(error) bool { return false }

func (descriptor) tryLock(bool) (bool, error)         { return false, errUnsupported }
func (descriptor) unlock() error                      { return errUnsupported }
func (descriptor) close()                             {}
func (descriptor) duplicate(string) (*os.File, error) { return nil, errUnsupported }
func (descriptor) ReadAt([]byte, int64) (int, error)  { return 0, errUnsupported }
func (descriptor) WriteAt([]byte, int64) (int, error) { return 0, errUnsupported }
func (descriptor) names(place, fileID) (bool, error)  { return true, nil }
func (descriptor) mark()                              {}
func (descriptor) unmark()                            {}
func (descriptor) marked() (waits, known bool)        { return false, false }

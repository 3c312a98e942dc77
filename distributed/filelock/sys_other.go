//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package filelock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// These systems lack locks that belong to an open file.

var (
	errUnsupported    = fmt.Errorf("file locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	errReadOnlySystem error
)

func idOf(*os.File) (fileID, error)             { return fileID{}, errUnsupported }
func leads(string, fileID) (bool, error)        { return true, nil }
func noDescriptors(error) bool                  { return false }
func (descriptor) tryLock(bool) (bool, error)   { return false, errUnsupported }
func (descriptor) unlock() error                { return errUnsupported }
func (descriptor) duplicate() (*os.File, error) { return nil, errUnsupported }

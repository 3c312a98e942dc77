package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// output is a file that is to be written later. The one that is there stays as it is until
// then.
type output struct {
	name string   // as the user called it
	path string   // where the file is
	file *os.File // a temporary one beside it, or what is there if that is no regular file
	temp bool
}

// create finds out whether a file can be written.
func create(name string) (*output, error) {
	o := &output{name: name, path: name}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, &fs.PathError{Op: "write", Path: name, Err: errors.New("is a directory")}
	case err == nil:
		// A file that must not be written must not be replaced either.
		if o.file, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() { // such as a pipe
			return o, nil
		}
		if err := o.file.Close(); err != nil {
			return nil, err
		}
		if o.path, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if o.file, err = os.CreateTemp(filepath.Dir(o.path), ".locklab-*"); err != nil {
		return nil, err
	}
	o.temp = true
	mode := fs.FileMode(0o644)
	if info != nil {
		mode = info.Mode().Perm()
	}
	if err := o.file.Chmod(mode); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		o.discard()
		return nil, err
	}
	return o, nil
}

// write writes the file, all of it or nothing.
func (o *output) write(content func(io.Writer) error) error {
	w := bufio.NewWriter(o.file)
	err := content(w)
	if err == nil {
		err = w.Flush()
	}
	file := o.file
	o.file = nil
	if closed := file.Close(); err == nil {
		err = closed
	}
	if o.temp {
		if err == nil {
			err = os.Rename(file.Name(), o.path)
		}
		if err != nil {
			_ = os.Remove(file.Name()) // The error to report is the one above.
		}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", o.name, err)
	}
	return nil
}

// discard drops a file that was not written.
func (o *output) discard() {
	if o.file == nil {
		return
	}
	_ = o.file.Close() // Nothing was written that could be lost.
	if o.temp {
		_ = os.Remove(o.file.Name())
	}
	o.file = nil
}
